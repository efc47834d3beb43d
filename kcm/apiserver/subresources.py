"""Subresources that are no plain part of their object: scale, binding, eviction, finalize.

Source: pkg/registry/apps/replicaset/storage/storage.go, pkg/registry/core/pod/storage
and pkg/registry/core/namespace/storage/storage.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kcm import errors
from kcm.api import labels
from kcm.api.apps_v1 import ReplicaSet, ReplicaSetSpec
from kcm.api.core_v1 import Namespace, Pod, PodCondition
from kcm.api.meta_v1 import KubeObject
from kcm.api.scheme import Resource
from kcm.api.times import format_time
from kcm.apiserver import bodies, patches, status, structs, verbs
from kcm.apiserver.answers import Answer, Call, json_answer
from kcm.apiserver.refusals import MethodNotAllowed, PathNotFound
from kcm.clock import Clock, RealClock
from kcm.store import Store

Handler = Callable[[Store, Call], Answer]
_CLOCK: Clock = RealClock()


# --- scale


def scale(store: Store, call: Call) -> Answer:
    """GET, PUT and PATCH of a ReplicaSet's scale."""
    if call.method == "GET":
        return json_answer(
            _scale_of(_replica_set(store.get(call.target.resource, call.target.key)))
        )
    wanted = _wanted_scale(call)

    def change(old: KubeObject) -> KubeObject:
        new = _scaled(_replica_set(old), wanted(_scale_of(_replica_set(old))))
        return verbs.tracked(call, old, new)

    return json_answer(_scale_of(_replica_set(verbs.modify(store, call, change))))


def _wanted_scale(call: Call) -> Callable[[dict[str, Any]], structs.Scale]:
    if call.method == "PATCH":
        # Scale has no lists, so a strategic patch of it is a merge patch.
        plain = call.content_type == patches.STRATEGIC
        media = patches.MERGE_PATCH if plain else call.content_type
        change = patches.parse(media, call.body, call.target.resource)
        return lambda old: structs.read(change(old), structs.Scale)
    found = bodies.struct_of(call, structs.Scale)
    return lambda _: found


def _replica_set(obj: KubeObject) -> ReplicaSet:
    assert isinstance(obj, ReplicaSet)
    return obj


def _scaled(old: ReplicaSet, wanted: structs.Scale) -> ReplicaSet:
    version, uid = wanted.metadata.resource_version, wanted.metadata.uid
    if (version and version != old.metadata.resource_version) or (uid and uid != old.uid):
        raise errors.Conflict.of("replicasets.apps", old.name)
    replicas = wanted.spec.replicas
    if replicas < 0:
        fault = errors.FieldError(
            "Invalid value", "spec.replicas", replicas, "must be greater than or equal to 0"
        )
        raise errors.Invalid([fault], kind="Scale.autoscaling", name=old.name)
    return old.with_spec(old.spec.replace(replicas=replicas))


def _scale_of(found: ReplicaSet) -> dict[str, Any]:
    meta, spec = found.metadata, found.spec
    created = meta.creation_timestamp
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": found.name,
            "namespace": found.namespace,
            "uid": found.uid,
            "resourceVersion": meta.resource_version,
            "creationTimestamp": format_time(created) if created else None,
        },
        "spec": {"replicas": spec.replicas or 0},
        "status": {"replicas": found.status.replicas, "selector": _selector(spec)},
    }


def _selector(spec: ReplicaSetSpec) -> str:
    return str(labels.Selector.from_label_selector(spec.selector))


# --- pods/binding, pods/eviction


def bind(store: Store, call: Call) -> Answer:
    """POST of a Binding: the pod goes to a node, once."""
    node = bodies.struct_of(call, structs.Binding).target.name
    if not node:
        fault = errors.FieldError("Required value", "target.name")
        raise errors.Invalid([fault], kind="Binding", name=call.target.name)

    def change(old: KubeObject) -> KubeObject:
        return _bound(old, node)

    # Assigning a node is no update in the sense of the pod's rules: those forbid it.
    verbs.modify_as(store, call, change, _keep)
    return json_answer(status.success(), 201)


def _bound(old: KubeObject, node: str) -> Pod:
    assert isinstance(old, Pod)
    why = None
    if old.deleting:
        why = f"pod {old.name} is being deleted, cannot be assigned to a host"
    elif old.spec.node_name:
        why = f'pod {old.name} is already assigned to node "{old.spec.node_name}"'
    elif old.spec.scheduling_gates:
        why = f"pod {old.name} has non-empty .spec.schedulingGates"
    if why:
        raise errors.Conflict.of("pods/binding", old.name, why)
    now = _CLOCK.now().replace(microsecond=0)
    scheduled = PodCondition(type="PodScheduled", status="True", last_transition_time=now)
    others = [c for c in old.status.conditions or () if c.type != "PodScheduled"]
    bound = old.with_spec(old.spec.replace(node_name=node))
    return bound.with_status(old.status.replace(conditions=[*others, scheduled]))


def _keep(new: KubeObject, old: KubeObject, resource: Resource) -> KubeObject:
    return new


def evict(store: Store, call: Call) -> Answer:
    """POST of an Eviction: a delete, for there are no disruption budgets yet."""
    found = bodies.struct_of(call, structs.Eviction).delete_options
    if found is None:
        found = structs.DeleteOptions()
    if call.dry_run:
        found.dry_run = ["All"]
    options, dry = bodies.meant(found)
    verbs.delete_object(store, call.target.resource, call.target.key, options, dry=dry)
    return json_answer(status.success(), 201)


# --- namespaces/finalize


def finalize(store: Store, call: Call) -> Answer:
    """PUT of a namespace with other spec.finalizers; without any, one being deleted goes."""
    obj, warnings = bodies.object_of(call)
    assert isinstance(obj, Namespace)
    finalizers = obj.spec.finalizers

    def change(old: KubeObject) -> KubeObject:
        assert isinstance(old, Namespace)
        return old.with_spec(old.spec.replace(finalizers=finalizers or None))

    return verbs.stored(call, verbs.modify_as(store, call, change, _keep), warnings=warnings)


_SCALE = {"GET": scale, "PUT": scale, "PATCH": scale}
_HANDLERS: Mapping[tuple[str, str], Mapping[str, Handler]] = {
    ("replicasets.apps", "scale"): _SCALE,
    ("pods", "binding"): {"POST": bind},
    ("pods", "eviction"): {"POST": evict},
    ("namespaces", "finalize"): {"PUT": finalize},
}


@dataclass(frozen=True)
class Subresource:
    """How discovery describes a subresource."""

    name: str
    kind: str
    group: str
    version: str
    verbs: tuple[str, ...]


_DESCRIBED = {
    "scale": Subresource("scale", "Scale", "autoscaling", "v1", ("get", "patch", "update")),
    "binding": Subresource("binding", "Binding", "", "v1", ("create",)),
    "eviction": Subresource("eviction", "Eviction", "policy", "v1", ("create",)),
    "finalize": Subresource("finalize", "Namespace", "", "v1", ("update",)),
}


def described(resource: Resource) -> list[Subresource]:
    """The subresources of a resource, in upstream's order (by name)."""
    found = [_DESCRIBED[name] for owner, name in _HANDLERS if owner == resource.name]
    if resource.has_status:
        verbs_ = ("get", "patch", "update")
        found.append(Subresource("status", resource.kind, resource.group, resource.version, verbs_))
    return sorted(found, key=lambda subresource: subresource.name)


def handler(call: Call) -> Handler:
    """Who answers. Raises: PathNotFound, MethodNotAllowed."""
    found = _HANDLERS.get((call.target.resource.name, call.target.subresource))
    if found is None:
        raise PathNotFound
    if call.method not in found:
        raise MethodNotAllowed
    return found[call.method]
