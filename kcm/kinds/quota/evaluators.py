"""Evaluators: compute the usage of objects of each kind.

Source: pkg/quota/v1/evaluator/core/{services,persistent_volume_claims,registry}.go and
staging/src/k8s.io/apiserver/pkg/quota/v1/generic/evaluator.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from typing import Any

from kcm.api.core_v1 import (
    PersistentVolumeClaim,
    ResourceQuota,
    ScopedResourceSelectorRequirement,
    Service,
)
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apimachinery.quantity import Quantity, ResourceList, add_amounts
from kcm.kinds.quota import devices, pods
from kcm.kinds.quota.amounts import ONE, ZERO, only

_UNTRACKED = frozenset({"events"})
# Kinds whose number can also be limited under their plural name alone.
_PLAIN = frozenset({"configmaps", "replicationcontrollers", "resourcequotas", "secrets"})


def _in_no_scope(obj: KubeObject, wanted: ScopedResourceSelectorRequirement) -> bool:
    return False


def _require_nothing(obj: KubeObject, limited: list[str]) -> str:
    return ""


@dataclass(frozen=True)
class Evaluator:
    """Computes the usage of objects of one kind."""

    tracks: Callable[[str], bool]  # whether a quota's resource of this name applies to the kind
    usage: Callable[[Any, datetime], ResourceList]  # the usage of an object at a time
    in_scope: Callable[[Any, ScopedResourceSelectorRequirement], bool] = _in_no_scope
    # what of these names an object does not specify, as a message
    missing: Callable[[Any, list[str]], str] = _require_nothing
    on_update: bool = False  # whether an update may increase the usage

    def tracked(self, quota: ResourceQuota) -> list[str]:
        """Returns the names of the quota's enforced limits that apply to this kind."""
        return [name for name in quota.status.hard or () if self.tracks(name)]

    def in_scopes(self, obj: KubeObject, quota: ResourceQuota) -> bool:
        """Reports whether the object matches all scopes of the quota."""
        spec = quota.spec
        wanted = [
            ScopedResourceSelectorRequirement(scope_name=scope, operator="Exists")
            for scope in spec.scopes or ()
        ]
        if spec.scope_selector is not None:
            wanted += spec.scope_selector.match_expressions or ()
        return all(self.in_scope(obj, requirement) for requirement in wanted)


def is_tracked(resource: Resource) -> bool:
    """Reports whether quotas can limit the kind."""
    return resource.namespaced and resource.name not in _UNTRACKED


def evaluator_of(resource: Resource) -> Evaluator:
    """Returns the evaluator of a kind. For most kinds it counts objects only."""
    return _OWN.get(resource.name) or _count_objects(resource.name)


# --- services


def _service_usage(service: Service, now: datetime) -> ResourceList:
    spec = service.spec
    usage = {
        "count/services": ONE,
        "services": ONE,
        "services.loadbalancers": ONE if spec.type == "LoadBalancer" else ZERO,
        "services.nodeports": ZERO,
    }
    ports = spec.ports or []
    if spec.type == "LoadBalancer" and spec.allocate_load_balancer_node_ports is False:
        ports = [port for port in ports if port.node_port]
    if spec.type in ("NodePort", "LoadBalancer"):
        usage["services.nodeports"] = Quantity(len(ports))
    return usage


_OF_SERVICES = frozenset(
    {"count/services", "services", "services.loadbalancers", "services.nodeports"}
)

# --- claims

_CLAIMS, _STORAGE = "persistentvolumeclaims", "requests.storage"
_OF_CLAIMS = frozenset({f"count/{_CLAIMS}", _CLAIMS, _STORAGE})
_OF_CLASS = ".storageclass.storage.k8s.io/"
_ATTRIBUTES = "VolumeAttributesClass"
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def _claim_tracks(name: str) -> bool:
    return name in _OF_CLAIMS or name.endswith((f"{_OF_CLASS}{_CLAIMS}", f"{_OF_CLASS}{_STORAGE}"))


def _claim_usage(claim: PersistentVolumeClaim, now: datetime) -> ResourceList:
    amounts = {_CLAIMS: ONE, _STORAGE: _storage_of(claim)}
    name = claim.annotations.get(_CLASS_ANNOTATION, claim.spec.storage_class_name)
    of_class = {f"{name}{_OF_CLASS}{of}": amount for of, amount in amounts.items()} if name else {}
    usage = {f"count/{_CLAIMS}": ONE, **amounts, **of_class}
    return {name: amount for name, amount in usage.items() if amount is not None}


def _claim_in_scope(
    claim: PersistentVolumeClaim, wanted: ScopedResourceSelectorRequirement
) -> bool:
    """Reports whether the claim has, had or is to get a VolumeAttributesClass that is wanted."""
    status = claim.status
    modified = status.modify_volume_status
    names = {
        claim.spec.volume_attributes_class_name,
        status.current_volume_attributes_class_name,
        modified.target_volume_attributes_class_name if modified else None,
    }
    if wanted.scope_name != _ATTRIBUTES:
        return False
    return pods.selects_any(wanted, frozenset(filter(None, names)))


def _storage_of(claim: PersistentVolumeClaim) -> Quantity | None:
    """Returns the requested storage, or the allocated storage if that is more, in whole bytes."""
    asked = (claim.spec.resources.requests or {}).get("storage")
    given = (claim.status.allocated_resources or {}).get("storage")
    if asked is None:
        return None
    return (max(asked, given) if given is not None else asked).round_up(0)


# --- all others


def _count_usage(usage: ResourceList, obj: KubeObject, now: datetime) -> ResourceList:
    return usage


@cache
def _count_objects(name: str) -> Evaluator:
    names = {f"count/{name}", name} if name in _PLAIN else {f"count/{name}"}
    return Evaluator(names.__contains__, partial(_count_usage, dict.fromkeys(names, ONE)))


_OWN = {
    "pods": Evaluator(pods.tracks, pods.usage, pods.in_scope, pods.missing),
    "services": Evaluator(_OF_SERVICES.__contains__, _service_usage, on_update=True),
    _CLAIMS: Evaluator(_claim_tracks, _claim_usage, _claim_in_scope, on_update=True),
    "resourceclaims.resource.k8s.io": Evaluator(devices.tracks, devices.usage, on_update=True),
}


# --- The total usage of all objects in a namespace.
#
# Source: CalculateUsage in staging/src/k8s.io/apiserver/pkg/quota/v1/resources.go and
# CalculateUsageStats in staging/src/k8s.io/apiserver/pkg/quota/v1/generic/evaluator.go, Kubernetes
# 1.33.


def used_by(
    quota: ResourceQuota,
    resources: Iterable[Resource],
    objects: Callable[[Resource], Iterable[KubeObject]],
    now: datetime,
) -> ResourceList:
    """Returns how much of the quota's limits the objects of its namespace use.

    `objects` is called only for kinds to which a limit applies. A limit that applies to none of
    `resources` has no entry.
    """
    hard = quota.spec.hard or {}
    total: ResourceList = {}
    for resource in resources:
        evaluator = evaluator_of(resource)
        limited = [name for name in hard if evaluator.tracks(name)]
        if not limited:
            continue
        total = add_amounts(dict.fromkeys(limited, ZERO), total)
        for obj in objects(resource):
            if evaluator.in_scopes(obj, quota):
                total = add_amounts(total, only(evaluator.usage(obj, now), limited))
    return total
