"""The usage of pods, and the scopes that they match.

Source: pkg/quota/v1/evaluator/core/pods.go and
staging/src/k8s.io/component-helpers/resource/helpers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import datetime

from kcm.api.core_v1 import Container, Pod, ScopedResourceSelectorRequirement
from kcm.api.core_v1.affinity import PodAffinityTerm
from kcm.api.pods.qos import BEST_EFFORT, compute_qos_class
from kcm.api.pods.resources import HUGE_PAGES, has_pod_level, is_native, limits_of, requests_of
from kcm.apimachinery.labels import Requirement
from kcm.apimachinery.meta_v1 import shift_time
from kcm.apimachinery.quantity import ResourceList
from kcm.kinds.quota.amounts import ONE, Amounts, format_names

COUNT = "count/pods"
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_NAMES = frozenset(
    {COUNT, "pods"}
    | {f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in _COMPUTE}
)
# If a quota limits these, every container must specify them. Upstream calls that a mistake, but
# keeps it.
_DEMANDED = ("cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory")
_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def tracks(name: str) -> bool:
    """Reports whether a quota's resource of this name applies to pods."""
    if name in _NAMES or name.startswith((HUGE_PAGES, f"requests.{HUGE_PAGES}")):
        return True
    return name.startswith("requests.") and not is_native(name)


def usage(pod: Pod, now: datetime) -> ResourceList:
    """Returns the pod's usage. A pod that `is_charged` excludes counts as an object only."""
    if not is_charged(pod, now):
        return {COUNT: ONE}
    return {COUNT: ONE, **_compute_usage(requests_of(pod.spec), limits_of(pod.spec))}


def is_resized(new: Pod, old: Pod) -> bool:
    """Reports whether the resources of the pod or of a container change."""
    if new.spec is old.spec:
        return False
    if new.spec.resources != old.spec.resources:
        return True
    both = zip(
        (*new.spec.containers, *(new.spec.init_containers or ())),
        (*old.spec.containers, *(old.spec.init_containers or ())),
        strict=False,
    )
    return any(after.resources != before.resources for after, before in both)


def is_charged(pod: Pod, now: datetime) -> bool:
    """Reports whether the pod's resources count.

    They do not if it has ended, or if its grace period has passed after a delete.
    """
    if pod.status.phase in ("Failed", "Succeeded"):
        return False
    meta = pod.metadata
    if meta.deletion_timestamp is None or meta.deletion_grace_period_seconds is None:
        return True
    end = shift_time(meta.deletion_timestamp, meta.deletion_grace_period_seconds)
    return now <= end


def _compute_usage(requests: Amounts, limits: Amounts) -> ResourceList:
    usage_by_name: ResourceList = {"pods": ONE}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith(HUGE_PAGES):
            usage_by_name[name] = usage_by_name[f"requests.{name}"] = amount
        elif not is_native(name):
            usage_by_name[f"requests.{name}"] = amount
    for name in _COMPUTE:
        if name in limits:
            usage_by_name[f"limits.{name}"] = limits[name]
    return usage_by_name


# --- what a quota demands of every container


def missing(pod: Pod, limited: list[str]) -> str:
    """Returns which containers lack what the quota limits, in upstream's words, "" if none does.

    A pod that has requests or limits as a whole may leave them out of its containers.
    """
    if has_pod_level(pod.spec):
        return ""
    demanded = [name for name in _DEMANDED if name in limited]
    containers = [*pod.spec.containers, *(pod.spec.init_containers or ())]
    parts = []
    for name in demanded:
        without = {
            c.name for c in containers if name not in _compute_usage(*_requests_and_limits(c))
        }
        if without:
            parts.append(f"{name} for: {format_names(without)}")
    return f"must specify {'; '.join(parts)}" if parts else ""


def _requests_and_limits(container: Container) -> tuple[Amounts, Amounts]:
    return container.resources.requests or {}, container.resources.limits or {}


# --- scopes


def in_scope(pod: Pod, wanted: ScopedResourceSelectorRequirement) -> bool:
    """Reports whether the pod matches a scope of a quota."""
    match wanted.scope_name:
        case "Terminating":
            return _has_deadline(pod)
        case "NotTerminating":
            return not _has_deadline(pod)
        case "BestEffort":
            return compute_qos_class(pod) == BEST_EFFORT
        case "NotBestEffort":
            return compute_qos_class(pod) != BEST_EFFORT
        case "PriorityClass":
            return _has_class(pod, wanted)
        case "CrossNamespacePodAffinity":
            affinity = pod.spec.affinity
            return affinity is not None and any(map(_crosses, affinity.list_pod_terms()))
    return False


def _has_deadline(pod: Pod) -> bool:
    seconds = pod.spec.active_deadline_seconds
    return seconds is not None and seconds >= 0


def _has_class(pod: Pod, wanted: ScopedResourceSelectorRequirement) -> bool:
    name = pod.spec.priority_class_name
    return selects_any(wanted, frozenset([name] if name else []))


def selects_any(wanted: ScopedResourceSelectorRequirement, names: frozenset[str]) -> bool:
    """Reports whether a scope with an operator selects one of an object's classes, or an object
    that has none.
    """
    operator = _OPERATORS.get(wanted.operator)
    if operator is None:
        return False
    scope = wanted.scope_name
    test = Requirement(scope, operator, tuple(wanted.values or ()))
    return any(test.matches({scope: name}) for name in names) if names else test.matches({})


def _crosses(term: PodAffinityTerm) -> bool:
    """Reports whether the term may select pods of other namespaces."""
    return bool(term.namespaces) or term.namespace_selector is not None
