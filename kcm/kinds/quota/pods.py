"""The usage of pods, and the scopes that they match.

Source: pkg/quota/v1/evaluator/core/pods.go and
staging/src/k8s.io/component-helpers/resource/helpers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from kcm.api.core_v1 import Container, Pod, PodSpec, ScopedResourceSelectorRequirement
from kcm.api.core_v1.affinity import Affinity, PodAffinityTerm
from kcm.apimachinery.labels import Requirement
from kcm.apimachinery.meta_v1 import shift_time
from kcm.apimachinery.quantity import ResourceList
from kcm.kinds.quota.amounts import ONE, ZERO, Amounts, add_amounts, format_names

COUNT = "count/pods"
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_NAMES = frozenset(
    {COUNT, "pods"}
    | {f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in _COMPUTE}
)
_HUGE_PAGES = "hugepages-"
# If a quota limits these, every container must specify them. Upstream calls that a mistake, but
# keeps it.
_DEMANDED = ("cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory")
_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def tracks(name: str) -> bool:
    """Reports whether a quota's resource of this name applies to pods."""
    if name in _NAMES or name.startswith((_HUGE_PAGES, f"requests.{_HUGE_PAGES}")):
        return True
    return name.startswith("requests.") and not _is_native(name)


def usage(pod: Pod, now: datetime) -> ResourceList:
    """Returns the pod's usage. A pod that `is_charged` excludes counts as an object only."""
    if not is_charged(pod, now):
        return {COUNT: ONE}
    return {COUNT: ONE, **_compute_usage(requests_of(pod.spec), limits_of(pod.spec))}


def is_resized(new: Pod, old: Pod) -> bool:
    """Reports whether the resources of a container change."""
    if new.spec is old.spec:
        return False
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
        if name in _COMPUTE or name.startswith(_HUGE_PAGES):
            usage_by_name[name] = usage_by_name[f"requests.{name}"] = amount
        elif not _is_native(name):
            usage_by_name[f"requests.{name}"] = amount
    for name in _COMPUTE:
        if name in limits:
            usage_by_name[f"limits.{name}"] = limits[name]
    return usage_by_name


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


# --- all containers together


def requests_of(spec: PodSpec) -> ResourceList:
    """Returns the requests of all containers, plus the overhead."""
    return add_amounts(_sum_containers(spec, "requests"), spec.overhead or {})


def limits_of(spec: PodSpec) -> ResourceList:
    """Returns the limits of all containers, plus the overhead of the resources that have a
    limit.
    """
    limits = _sum_containers(spec, "limits")
    extra = {name: amount for name, amount in (spec.overhead or {}).items() if limits.get(name)}
    return add_amounts(limits, extra)


def _sum_containers(spec: PodSpec, field: str) -> ResourceList:
    """Returns the most that containers need at a time, by resource.

    Containers and sidecars run together. An init container runs together with the sidecars before
    it. `field` is `requests` or `limits`.
    """
    running: ResourceList = {}
    for container in spec.containers:
        running = add_amounts(running, _read_resources(container, field))
    sidecars: ResourceList = {}
    peak: ResourceList = {}
    for container in spec.init_containers or ():
        needs = _read_resources(container, field)
        if container.restart_policy == "Always":
            running, sidecars = add_amounts(running, needs), add_amounts(sidecars, needs)
            needs = sidecars
        else:
            needs = add_amounts(needs, sidecars)
        peak = _larger(peak, needs)
    return _larger(running, peak)


def _read_resources(container: Container, field: str) -> Amounts:
    given: ResourceList | None = getattr(container.resources, field)
    return given or {}


def _larger(left: Amounts, right: Amounts) -> ResourceList:
    return {**left, **{n: max(a, left.get(n, a)) for n, a in right.items()}}


# --- what a quota demands of every container


def missing(pod: Pod, limited: list[str]) -> str:
    """Returns which containers lack what the quota limits, in upstream's words, "" if none does."""
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
    return _read_resources(container, "requests"), _read_resources(container, "limits")


# --- scopes


def in_scope(pod: Pod, wanted: ScopedResourceSelectorRequirement) -> bool:
    """Reports whether the pod matches a scope of a quota."""
    match wanted.scope_name:
        case "Terminating":
            return _has_deadline(pod)
        case "NotTerminating":
            return not _has_deadline(pod)
        case "BestEffort":
            return _is_best_effort(pod)
        case "NotBestEffort":
            return not _is_best_effort(pod)
        case "PriorityClass":
            return _has_class(pod, wanted)
        case "CrossNamespacePodAffinity":
            return any(map(_crosses, _affinity_terms(pod.spec.affinity)))
    return False


def _has_deadline(pod: Pod) -> bool:
    seconds = pod.spec.active_deadline_seconds
    return seconds is not None and seconds >= 0


def _is_best_effort(pod: Pod) -> bool:
    containers = [*pod.spec.containers, *(pod.spec.init_containers or ())]
    all_amounts = [
        amounts for container in containers for amounts in _requests_and_limits(container)
    ]
    return not any(
        amounts.get(name, ZERO).sign() > 0 for amounts in all_amounts for name in ("cpu", "memory")
    )


def _has_class(pod: Pod, wanted: ScopedResourceSelectorRequirement) -> bool:
    name = pod.spec.priority_class_name
    operator = _OPERATORS.get(wanted.operator)
    if operator is None:
        return False
    test = Requirement("PriorityClass", operator, tuple(wanted.values or ()))
    return test.matches({"PriorityClass": name} if name else {})


def _affinity_terms(affinity: Affinity | None) -> Iterator[PodAffinityTerm]:
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    for side in sides:
        if side is not None:
            yield from side.required_during_scheduling_ignored_during_execution or ()
            for weighted in side.preferred_during_scheduling_ignored_during_execution or ():
                yield weighted.pod_affinity_term


def _crosses(term: PodAffinityTerm) -> bool:
    """Reports whether the term may select pods of other namespaces."""
    return bool(term.namespaces) or term.namespace_selector is not None
