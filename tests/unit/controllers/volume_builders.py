"""Claims and volumes as upstream's tables of the binder write them."""

from __future__ import annotations

from typing import Any

from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim
from kcm.api.core_v1.events import ObjectReference
from kcm.apimachinery.meta_v1 import LabelSelector
from kcm.helpers.volumes.binding import BIND_COMPLETED, BOUND_BY_CONTROLLER
from kcm.testing import storage_builders

BOUND_BY = BOUND_BY_CONTROLLER
COMPLETED = BIND_COMPLETED
LABELS = {"foo": "true", "bar": "false"}


def a_volume(
    size: str = "1Gi",
    uid: str = "",
    claim: str = "",
    phase: str = "Available",
    *marks: str,
    name: str = "volume",
    policy: str = "Retain",
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> PersistentVolume:
    """Upstream's newVolume: bound to the claim of this name and uid, with these annotations."""
    reference = None
    if claim:
        reference = ObjectReference(
            kind="PersistentVolumeClaim",
            api_version="v1",
            namespace="default",
            name=claim,
            uid=uid or None,
        )
    return storage_builders.volume(
        name,
        size,
        metadata={"annotations": dict.fromkeys(marks, "yes") or None, "labels": labels},
        phase=phase,
        claim_ref=reference,
        persistent_volume_reclaim_policy=policy,
        **spec,
    )


def a_claim(
    size: str = "1Gi",
    volume: str | None = None,
    phase: str = "Pending",
    *marks: str,
    name: str = "claim",
    uid: str = "uid",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> PersistentVolumeClaim:
    """Upstream's newClaim."""
    status: dict[str, Any] = {"phase": phase}
    made = storage_builders.claim(
        name,
        size,
        metadata={
            "uid": uid,
            "annotations": {**dict.fromkeys(marks, "yes"), **(annotations or {})} or None,
        },
        volume_name=volume,
        selector=None if labels is None else LabelSelector(match_labels=labels),
        **spec,
    )
    if phase in ("Bound", "Lost") and phase == "Bound":
        status |= {"access_modes": ["ReadWriteOnce"], "capacity": made.spec.resources.requests}
    return made.with_status(made.status.replace(**status))


def shown_volume(volume: PersistentVolume | None) -> str:
    """`Bound claim/uid bound-by`: phase, claim and marks of a volume; "gone" if there is none."""
    if volume is None:
        return "gone"
    words = [volume.status.phase or ""]
    reference = volume.spec.claim_ref
    if reference is not None:
        words.append(f"{reference.name}/{reference.uid or ''}")
    if BOUND_BY in volume.annotations:
        words.append("bound-by")
    return " ".join(words)


def shown_claim(claim: PersistentVolumeClaim) -> str:
    """`Bound volume 1Gi bound-by completed`: phase, volume, size and marks of a claim."""
    words = [claim.status.phase or ""]
    if claim.spec.volume_name:
        words.append(claim.spec.volume_name)
    if claim.status.capacity:
        words.append(str(claim.status.capacity["storage"]))
    words += ["bound-by"] if BOUND_BY in claim.annotations else []
    words += ["completed"] if COMPLETED in claim.annotations else []
    return " ".join(words)
