"""Admission of new and changed objects: the system completes or rejects them.

It runs where writes are built, whatever their source is: HTTP, the event bus, the command line or a
controller. Copies of an admitted pod (see `Pattern`) are not admitted again. As upstream's plugins
do, it uses PriorityClasses that it has read a short time ago, and reads a class that is not among
them.

Source: plugin/pkg/admission/priority/admission.go,
plugin/pkg/admission/defaulttolerationseconds/admission.go and
pkg/registry/scheduling/rest/storage_scheduling.go, Kubernetes 1.33.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from kcm import errors
from kcm.api.core_v1 import LimitRange, PersistentVolumeClaim, Pod, PodSpec, Toleration
from kcm.api.networking_v1 import IngressClass
from kcm.api.scheduling_v1 import PriorityClass
from kcm.api.storage_v1 import StorageClass
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.kinds.quota.pods import is_resized
from kcm.settings import Settings
from kcm.store.admission.ingress_classes import IngressClassAdmission
from kcm.store.admission.limit_ranges import LimitRanger
from kcm.store.admission.memory import WriteWatch
from kcm.store.admission.runtime_classes import RuntimeClassAdmission
from kcm.store.admission.service_accounts import ServiceAccountAdmission
from kcm.store.admission.storage import StorageAdmission
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


class Admission:
    """Admits new and changed objects of one store."""

    def __init__(
        self, reader: StoreReader, settings: Settings, rng: random.Random | None = None
    ) -> None:
        self._reader = reader
        self._tolerations = (
            _toleration("not-ready", settings.default_not_ready_toleration_seconds),
            _toleration("unreachable", settings.default_unreachable_toleration_seconds),
        )
        self._limits = LimitRanger(reader)
        self._accounts = ServiceAccountAdmission(reader, rng)
        self._runtimes = RuntimeClassAdmission(reader)
        self._storage = StorageAdmission(reader)
        self._ingresses = IngressClassAdmission(reader)
        self._class_writes = WriteWatch(reader, PriorityClass)
        self._classes: dict[str, PriorityClass] = {}

    def admit(self, obj: KubeObject, monotonic: float) -> KubeObject:
        """Returns a new object as the system completes it. Raises: Forbidden, StoreUnavailable.

        `monotonic` is the time on the monotonic clock in seconds.
        """
        if isinstance(obj, Pod):
            spec = self._add_priority(self._add_tolerations(obj.spec), obj, monotonic)
            spec = self._accounts.admit(spec, obj, monotonic)
            spec = self._runtimes.admit(spec, obj, monotonic)
            return self._limits.admit_pod(
                obj if spec is obj.spec else obj.with_spec(spec), monotonic
            )
        self.check(obj, monotonic)
        return self._ingresses.admit(self._storage.admit(obj, monotonic), monotonic)

    def check(self, obj: KubeObject, monotonic: float, old: KubeObject | None = None) -> None:
        """Raises Forbidden for a changed object, or a new one other than a pod, that is not
        admitted. Of a pod, only a change of its resources is checked.

        `old` is the object before the change. Raises: StoreUnavailable.
        """
        if isinstance(obj, Pod):
            if isinstance(old, Pod) and is_resized(obj, old):
                self._limits.check_pod(obj, monotonic)
        elif isinstance(obj, PersistentVolumeClaim):
            self._limits.check_claim(obj, monotonic)
            if isinstance(old, PersistentVolumeClaim):
                self._storage.check_growth(obj, old, monotonic)
        elif isinstance(obj, PriorityClass):
            self.check_default(obj)
        elif isinstance(obj, LimitRange):
            self._limits.forget()
        elif isinstance(obj, StorageClass):
            self._storage.forget()
        elif isinstance(obj, IngressClass):
            self._ingresses.forget()

    def _add_tolerations(self, spec: PodSpec) -> PodSpec:
        """Adds tolerations with which a pod stays some minutes on a node that fails, unless it has
        own ones.
        """
        tolerations = spec.tolerations or []
        added = [
            wanted
            for wanted in self._tolerations
            if not any(
                (not mine.key or mine.key == wanted.key) and mine.effect in (None, "", "NoExecute")
                for mine in tolerations
            )
        ]
        return spec.replace(tolerations=[*tolerations, *added]) if added else spec

    def check_default(self, priority_class: PriorityClass) -> None:
        """Raises Forbidden for a class that would be the second default class."""
        self._class_writes.look_soon()
        if not priority_class.global_default:
            return
        for other in self._list_classes():
            if other.global_default and other.name != priority_class.name:
                raise errors.Forbidden(
                    f'priorityclasses.scheduling.k8s.io "{priority_class.name}" is forbidden: '
                    f"PriorityClass {other.name} is already marked as default. "
                    "Only one default can exist",
                    resource="priorityclasses.scheduling.k8s.io",
                    name=priority_class.name,
                )

    def _add_priority(self, spec: PodSpec, pod: Pod, monotonic: float) -> PodSpec:
        if self._class_writes.has_news(monotonic):
            self._classes = {c.name: c for c in self._list_classes()}
        name = spec.priority_class_name or self._default_name()
        priority_class = self._class(name, pod) if name else _NO_CLASS
        policy = priority_class.preemption_policy or PREEMPT_LOWER
        if spec.priority is not None and spec.priority != priority_class.value:
            raise _forbid(
                pod,
                f"the integer value of priority ({spec.priority}) must not be provided in pod "
                f"spec; priority admission controller computed {priority_class.value} from the "
                "given PriorityClass name",
            )
        if spec.preemption_policy is not None and spec.preemption_policy != policy:
            raise _forbid(
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
        known = self._classes.get(name) or SYSTEM_CLASSES.get(name)
        if known is None:
            fresh = self._reader.find(PriorityClass.resource, name)
            if fresh is None:
                raise _forbid(pod, f"no PriorityClass with name {name} was found")
            known = self._classes[name] = fresh
        return known

    def _list_classes(self) -> Sequence[PriorityClass]:
        return self._reader.list(PriorityClass.resource).items


def _toleration(state: str, seconds: int) -> Toleration:
    return Toleration(
        key=f"node.kubernetes.io/{state}",
        operator="Exists",
        effect="NoExecute",
        toleration_seconds=seconds,
    )


def _forbid(pod: Pod, why: str) -> errors.Forbidden:
    name = pod.name or pod.metadata.generate_name or ""
    return errors.Forbidden(f'pods "{name}" is forbidden: {why}', resource="pods", name=name)
