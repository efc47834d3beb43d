"""The admission plugin Priority: gives pods the priority of their PriorityClass, and lets updates
leave it out.

As upstream's plugin it uses PriorityClasses that it has read a short time ago, and reads a class
that is not among them.

Source: plugin/pkg/admission/priority/admission.go and
pkg/registry/scheduling/rest/storage_scheduling.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api.admissionregistration_v1 import CREATE, UPDATE
from kcm.api.core_v1 import Pod, PodSpec
from kcm.api.scheduling_v1 import PriorityClass
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.clock import Clock
from kcm.store.admission.memory import WriteWatch
from kcm.store.admission.plugin import Plugin, Write, forbid
from kcm.store.reader import StoreReader

PREEMPT_LOWER = "PreemptLowerPriority"

_SYSTEM_CLASSES = (
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to "
        "another node if necessary.",
    ),
)
SYSTEM_CLASSES = {
    name: PriorityClass(
        metadata=ObjectMeta(name=name),
        value=value,
        description=text,
        preemption_policy=PREEMPT_LOWER,
    )
    for name, value, text in _SYSTEM_CLASSES
}
_NO_CLASS = PriorityClass(preemption_policy=PREEMPT_LOWER)


class Priority(Plugin):
    """Completes new and updated pods, and refuses a second default class."""

    name = "Priority"

    def __init__(self, reader: StoreReader, clock: Clock) -> None:
        self._reader = reader
        self._writes = WriteWatch(reader, PriorityClass, clock)
        self._classes: dict[str, PriorityClass] = {}

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        if resource == Pod.resource.name:
            return operation in (CREATE, UPDATE) and not subresource
        return resource == PriorityClass.resource.name

    def admit(self, write: Write) -> Write:
        """Raises: Forbidden, StoreUnavailable."""
        pod = write.new
        if not isinstance(pod, Pod):
            return write
        if isinstance(write.old, Pod):
            spec = _keep_priority(pod.spec, write.old.spec)
        else:
            spec = self._add_priority(pod.spec, pod)
        return write if spec is pod.spec else write.with_new(pod.with_spec(spec))

    def validate(self, write: Write) -> None:
        """Raises: Forbidden, StoreUnavailable."""
        if write.resource.name != PriorityClass.resource.name:
            return
        self._writes.expect_change()
        given = write.new
        if not isinstance(given, PriorityClass) or not given.global_default:
            return
        for other in self._list_classes():
            if other.global_default and other.name != given.name:
                raise forbid(
                    given,
                    f"PriorityClass {other.name} is already marked as default. "
                    "Only one default can exist",
                )

    def _add_priority(self, spec: PodSpec, pod: Pod) -> PodSpec:
        if self._writes.has_changed():
            self._classes = {c.name: c for c in self._list_classes()}
        name = spec.priority_class_name or self._default_name()
        priority_class = self._class(name, pod) if name else _NO_CLASS
        policy = priority_class.preemption_policy or PREEMPT_LOWER
        if spec.priority is not None and spec.priority != priority_class.value:
            raise forbid(
                pod,
                f"the integer value of priority ({spec.priority}) must not be provided in pod "
                f"spec; priority admission controller computed {priority_class.value} from the "
                "given PriorityClass name",
            )
        if spec.preemption_policy is not None and spec.preemption_policy != policy:
            raise forbid(
                pod,
                f"the string value of PreemptionPolicy ({spec.preemption_policy}) must not be "
                f"provided in pod spec; priority admission controller computed {policy} from "
                "the given PriorityClass name",
            )
        wanted = (priority_class.value, policy, name or None)
        if wanted == (spec.priority, spec.preemption_policy, spec.priority_class_name):
            return spec
        return spec.replace(
            priority=priority_class.value,
            preemption_policy=policy,
            priority_class_name=name or None,
        )

    def _default_name(self) -> str:
        """Returns the default class's name, "" if there is none. Of several, the lowest value
        counts.
        """
        defaults = [c for c in self._classes.values() if c.global_default]
        return min(defaults, key=lambda c: c.value).name if defaults else ""

    def _class(self, name: str, pod: Pod) -> PriorityClass:
        recent = self._classes.get(name) or SYSTEM_CLASSES.get(name)
        if recent is None:
            fresh = self._reader.find(PriorityClass.resource, name)
            if fresh is None:
                raise forbid(pod, f"no PriorityClass with name {name} was found")
            recent = self._classes[name] = fresh
        return recent

    def _list_classes(self) -> Sequence[PriorityClass]:
        return self._reader.list(PriorityClass.resource).items


def _keep_priority(new: PodSpec, old: PodSpec) -> PodSpec:
    """Returns the new spec with the old priority and preemption policy where it has none."""
    kept = {
        name: value
        for name in ("priority", "preemption_policy")
        if getattr(new, name) is None and (value := getattr(old, name)) is not None
    }
    return new.replace(**kept) if kept else new
