"""RuntimeClass admission: gives pods the overhead and the nodes of their RuntimeClass.

As upstream's plugin it uses RuntimeClasses that it has read a short time ago, and reads one that is
not among them. No runtime is chosen by a class: kubelets and simulated nodes have one each.

Source: plugin/pkg/admission/runtimeclass/admission.go and pkg/util/tolerations/tolerations.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from kcm import errors
from kcm.api.core_v1 import Pod, PodSpec, Toleration
from kcm.api.node_v1 import RuntimeClass, Scheduling
from kcm.store.admission.memory import WriteWatch
from kcm.store.reader import StoreReader

_REJECTED = "pod rejected: "


class RuntimeClassAdmission:
    """Completes and checks the pods of one store that name a RuntimeClass."""

    def __init__(self, reader: StoreReader) -> None:
        self._reader = reader
        self._writes = WriteWatch(reader, RuntimeClass)
        self._known: dict[str, RuntimeClass] = {}  # by name

    def admit(self, spec: PodSpec, pod: Pod, monotonic: float) -> PodSpec:
        """Returns the spec with what the pod's class says. Raises: Forbidden, StoreUnavailable."""
        name = spec.runtime_class_name
        found = self._find(name, monotonic) if name is not None else None
        if name is not None and found is None:
            raise _forbid(pod, f'{_REJECTED}RuntimeClass "{name}" not found')
        spec = _add_overhead(spec, pod, found)
        if found is None or found.scheduling is None:
            return spec
        return _add_scheduling(spec, pod, found.scheduling)

    def _find(self, name: str, monotonic: float) -> RuntimeClass | None:
        if self._writes.has_news(monotonic):
            self._known = {}
        if name not in self._known:
            found = self._reader.find(RuntimeClass.resource, name)
            if found is None:
                return None
            self._known[name] = found
        return self._known[name]


def _add_overhead(spec: PodSpec, pod: Pod, found: RuntimeClass | None) -> PodSpec:
    if found is None or found.overhead is None:
        if spec.overhead is not None:
            why = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise _forbid(pod, _REJECTED + why)
        return spec
    fixed = found.overhead.pod_fixed
    if spec.overhead is not None and spec.overhead != fixed:
        why = "Pod's Overhead doesn't match RuntimeClass's defined Overhead"
        raise _forbid(pod, _REJECTED + why)
    return spec if spec.overhead == fixed else spec.replace(overhead=fixed)


def _add_scheduling(spec: PodSpec, pod: Pod, scheduling: Scheduling) -> PodSpec:
    own, wanted = spec.node_selector or {}, scheduling.node_selector or {}
    for label, value in wanted.items():
        if own.get(label, value) != value:
            raise _forbid(
                pod,
                f"conflict: runtimeClass.scheduling.nodeSelector[{label}] = {value}; "
                f"pod.spec.nodeSelector[{label}] = {own[label]}",
            )
    selector = {**own, **wanted} or spec.node_selector
    tolerations = _merge(spec.tolerations or [], scheduling.tolerations or [])
    if selector == spec.node_selector and tolerations == (spec.tolerations or []):
        return spec
    return spec.replace(node_selector=selector, tolerations=tolerations or None)


def _merge(own: list[Toleration], wanted: list[Toleration]) -> list[Toleration]:
    """Returns the pod's tolerations with those of its class, which replace its own of the same key
    and effect.
    """
    replaced = {_identity(one) for one in wanted}
    kept = [one for one in own if _identity(one) not in replaced]
    if len(kept) + len(wanted) == len(own) and all(one in own for one in wanted):
        return own
    return [*wanted, *kept]


def _identity(toleration: Toleration) -> tuple[str, str]:
    return toleration.key or "", toleration.effect or ""


def _forbid(pod: Pod, why: str) -> errors.Forbidden:
    name = pod.name or pod.metadata.generate_name or ""
    return errors.Forbidden(f'pods "{name}" is forbidden: {why}', resource="pods", name=name)
