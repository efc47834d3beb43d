"""EphemeralVolume: creates the claims of pods' ephemeral volumes.

The pod owns them, so they go with it.

Source: pkg/controller/volume/ephemeral/controller.go and
staging/src/k8s.io/component-helpers/storage/ephemeral/ephemeral.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import Field

from kcm import errors
from kcm.api.core_v1 import PersistentVolumeClaim, Pod
from kcm.api.core_v1.volumes import Volume
from kcm.api.storage_v1 import claim_name
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apimachinery.ownership import is_controlled_by, new_controller_ref
from kcm.sdk import (
    BY_CLAIM,
    Change,
    Controller,
    Counter,
    Counts,
    Create,
    Event,
    Options,
    Outcome,
    Plan,
    View,
    Watch,
)

CREATED = Counter(
    "ephemeral_volume_controller_create",
    "Number of PersistentVolumeClaim creation requests",
)
FAILED = Counter(
    "ephemeral_volume_controller_create_failures",
    "Number of PersistentVolumeClaim creation requests that failed",
)
REASON = "FailedBinding"


class EphemeralVolumeOptions(Options):
    """The options of the ephemeral-volume controller."""

    concurrent_ephemeralvolume_syncs: int = Field(
        default=5,
        ge=1,
        description="The number of ephemeral volume syncing operations that will be done "
        "concurrently. Larger number = faster ephemeral volume updating, but more CPU (and "
        "network) load",
    )


class EphemeralVolumeController(Controller):
    """Syncs pods with ephemeral volumes, one key each."""

    name = "ephemeral-volume-controller"
    short_name = "ephemeralvolume"
    metrics = (CREATED, FAILED)
    options_type = EphemeralVolumeOptions
    options: EphemeralVolumeOptions

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(Pod, new_pods), Watch(PersistentVolumeClaim, pods_of_lost_claim))

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_ephemeralvolume_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        pod = view.lister(Pod).find(key)
        if pod is None or pod.deleting:
            return Plan()
        plan = Plan()
        created: list[Volume] = []
        for volume in pod.spec.volumes or ():
            if volume.ephemeral is None:
                continue
            name = claim_name(pod, volume)
            present = view.lister(PersistentVolumeClaim).find(f"{pod.namespace}/{name}")
            if present is None:
                plan.then(Create(new_claim(pod, volume)), essential=True)
                created.append(volume)
            elif not is_controlled_by(present, pod):
                return _foreign(plan, pod, volume, name)
        plan.counts_after = _count
        plan.events_after = lambda outcome: _failures(pod, created, outcome)
        return plan


def _foreign(plan: Plan, pod: Pod, volume: Volume, name: str) -> Plan:
    """Returns the plan that ends with an error, since the claim belongs to somebody else."""
    why = (
        f"PVC {pod.namespace}/{name} was not created for pod {pod.namespace}/{pod.name} "
        "(pod is not owner)"
    )
    plan.record(pod, REASON, f"ephemeral volume {volume.name}: {why}", warning=True)
    text = f"pod {pod.key}, ephemeral volume {volume.name}: {why}"
    plan.error = errors.Conflict(text)
    return plan


def _count(outcome: Outcome) -> Counts:
    tried = len(outcome.done) + len(outcome.failures)
    counts = CREATED.count(by=tried) if tried else {}
    return counts | FAILED.count(by=len(outcome.failures)) if outcome.failures else counts


def _failures(pod: Pod, volumes: list[Volume], outcome: Outcome) -> list[Event]:
    names = {claim_name(pod, volume): volume.name for volume in volumes}
    events = []
    for failure in outcome.failures:
        assert isinstance(failure.write, Create)  # the plan has no other writes
        name = failure.write.obj.name
        text = f"ephemeral volume {names[name]}: create PVC {name}: {failure.error}"
        events.append(Event(pod, "Warning", REASON, text))
    return events


def new_claim(pod: Pod, volume: Volume) -> PersistentVolumeClaim:
    """Returns the claim of an ephemeral volume, with the pod as its owner."""
    assert volume.ephemeral is not None
    template = volume.ephemeral.volume_claim_template
    assert template is not None
    meta = ObjectMeta(
        name=claim_name(pod, volume),
        namespace=pod.namespace,
        owner_references=[new_controller_ref(pod)],
        annotations=template.metadata.annotations,
        labels=template.metadata.labels,
    )
    return PersistentVolumeClaim(metadata=meta, spec=template.spec)


def new_pods(change: Change, view: View) -> Iterable[str]:
    """Returns the key of a new pod with ephemeral volumes. The spec of a pod does not change."""
    pod = change.new
    if change.old is None and isinstance(pod, Pod) and _has_work(pod):
        yield pod.key


def pods_of_lost_claim(change: Change, view: View) -> Iterable[str]:
    """Returns the keys of the pods whose claim was deleted, which need a new one."""
    if change.new is not None:
        return
    for pod in view.lister(Pod).by_index(BY_CLAIM, change.object.key):
        if _has_work(pod):
            yield pod.key


def _has_work(pod: Pod) -> bool:
    ephemeral = any(volume.ephemeral is not None for volume in pod.spec.volumes or ())
    return ephemeral and not pod.deleting
