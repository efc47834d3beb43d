"""The admission plugin RuntimeClass: gives pods the overhead and the nodes of their RuntimeClass.

As upstream's plugin it uses RuntimeClasses that it has read a short time ago, and reads one that is
not among them. No runtime is chosen by a class: kubelets and simulated nodes have one each.

Source: plugin/pkg/admission/runtimeclass/admission.go and pkg/util/tolerations/tolerations.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.admissionregistration_v1 import CREATE
from kcm.api.core_v1 import Pod, PodSpec, Toleration
from kcm.api.node_v1 import RuntimeClass as Class
from kcm.api.node_v1 import Scheduling
from kcm.clock import Clock
from kcm.store.admission.memory import WriteWatch
from kcm.store.admission.plugin import Plugin, Write, forbid
from kcm.store.reader import StoreReader

_REJECTED = "pod rejected: "


class RuntimeClass(Plugin):
    """Completes and checks the pods of one store that name a RuntimeClass."""

    name = "RuntimeClass"

    def __init__(self, reader: StoreReader, clock: Clock) -> None:
        self._reader = reader
        self._writes = WriteWatch(reader, Class, clock)
        self._classes: dict[str, Class] = {}  # by name

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        return (resource, subresource, operation) == (Pod.resource.name, "", CREATE)

    def admit(self, write: Write) -> Write:
        """Raises: Forbidden, StoreUnavailable."""
        pod = write.new_as(Pod)
        name = pod.spec.runtime_class_name
        named = self._find(name) if name is not None else None
        if name is not None and named is None:
            raise forbid(pod, f'{_REJECTED}RuntimeClass "{name}" not found')
        spec = _add_overhead(pod.spec, pod, named)
        if named is not None and named.scheduling is not None:
            spec = _add_scheduling(spec, pod, named.scheduling)
        return write if spec is pod.spec else write.with_new(pod.with_spec(spec))

    def _find(self, name: str) -> Class | None:
        if self._writes.has_changed():
            self._classes = {}
        if name not in self._classes:
            stored = self._reader.find(Class.resource, name)
            if stored is None:
                return None
            self._classes[name] = stored
        return self._classes[name]


def _add_overhead(spec: PodSpec, pod: Pod, named: Class | None) -> PodSpec:
    if named is None or named.overhead is None:
        if spec.overhead is not None:
            why = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise forbid(pod, _REJECTED + why)
        return spec
    fixed = named.overhead.pod_fixed
    if spec.overhead is not None and spec.overhead != fixed:
        why = "Pod's Overhead doesn't match RuntimeClass's defined Overhead"
        raise forbid(pod, _REJECTED + why)
    return spec if spec.overhead == fixed else spec.replace(overhead=fixed)


def _add_scheduling(spec: PodSpec, pod: Pod, scheduling: Scheduling) -> PodSpec:
    own, wanted = spec.node_selector or {}, scheduling.node_selector or {}
    for label, value in wanted.items():
        if own.get(label, value) != value:
            raise forbid(
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
