"""The volumes that pods on simulated nodes wait for, and that nodes report as in use.

A pod's containers start when each of its claims is bound, and each volume that has to be attached
is in its node's `volumesAttached`. From its admission until it has ended, the node lists such
volumes in `volumesInUse`, so that they are not detached meanwhile.

Source: WaitForAttachAndMount in pkg/kubelet/volumemanager/volume_manager.go,
reconciler/reconstruct.go and GenerateVerifyControllerAttachedVolumeFunc in
pkg/volume/util/operationexecutor/operation_generator.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kcm.api.core_v1 import Node, Pod
from kcm.api.storage_v1 import claim_name
from kcm.simulation.runs import PodEvent
from kcm.simulation.storage.seen import SeenStorage

MOUNT_TIMEOUT = 123.0  # seconds, upstream's podAttachAndMountTimeout
POLL = 0.3  # seconds between looks, upstream's podAttachAndMountRetryInterval


@dataclass(frozen=True, slots=True)
class PodVolume:
    """A volume of a pod that is a claim."""

    name: str  # in the pod's spec
    claim: str  # the key of the claim
    bound: bool  # whether the claim has its volume
    unique_name: str  # "" unless the volume has to be attached


@dataclass(slots=True)
class PodMounts:
    """The state of a pod's claims on its node."""

    since: float  # when the node first looked at them
    in_use: tuple[str, ...] = ()  # the unique names of those that have to be attached
    mounted: bool = False  # whether all of them were attached once
    told: int = 0  # how many Events said that it waits


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a pod waits: when to look again, and what to say."""

    due: float
    events: tuple[PodEvent, ...] = ()


def has_claims(pod: Pod) -> bool:
    """Reports whether a volume of the pod is a claim."""
    return any(claim_name(pod, volume) for volume in pod.spec.volumes or ())


def find_volumes(pod: Pod, seen: SeenStorage) -> list[PodVolume]:
    """Returns the pod's volumes that are claims."""
    volumes: list[PodVolume] = []
    for volume in pod.spec.volumes or ():
        name = claim_name(pod, volume)
        if not name:
            continue
        key = f"{pod.namespace}/{name}"
        claim = seen.claims.get(key)
        present = seen.volumes.get(claim.volume) if claim is not None and claim.bound else None
        bound = present is not None and claim is not None and present.claim_uid == claim.uid
        attached = present is not None and present.driver not in seen.unattached_drivers
        unique = present.unique_name if present is not None and bound and attached else ""
        volumes.append(PodVolume(volume.name, key, bound, unique))
    return volumes


def wait_for(
    mounts: PodMounts, volumes: Sequence[PodVolume], node: Node | None, now: float
) -> Waiting | None:
    """Returns why the pod waits for its volumes, None if it has them. Changes `mounts`."""
    status = node.status if node is not None else None
    attached = {v.name for v in (status.volumes_attached or ())} if status is not None else set()
    in_use = set(status.volumes_in_use or ()) if status is not None else set()
    missing = [
        v for v in volumes if not v.bound or (v.unique_name and v.unique_name not in attached)
    ]
    unreported = [v for v in volumes if v.unique_name and v.unique_name not in in_use]
    if not missing and not unreported:
        mounts.mounted = True
        return None
    events: list[PodEvent] = []
    times = int((now - mounts.since) // MOUNT_TIMEOUT)
    if times > mounts.told:
        mounts.told = times
        events.append(PodEvent("Warning", "FailedMount", _describe(missing or unreported)))
    due = mounts.since + (times + 1) * MOUNT_TIMEOUT
    return Waiting(due if missing else min(due, now + POLL), tuple(events))


def _describe(missing: Sequence[PodVolume]) -> str:
    unmounted = _join(v.name for v in missing)
    unattached = _join(v.name for v in missing if v.bound)
    unprocessed = _join(v.name for v in missing if not v.bound)
    return (
        f"Unable to attach or mount volumes: unmounted volumes=[{unmounted}], "
        f"unattached volumes=[{unattached}], failed to process volumes=[{unprocessed}]: "
        "context deadline exceeded"
    )


def _join(names: Iterable[str]) -> str:
    return " ".join(names)
