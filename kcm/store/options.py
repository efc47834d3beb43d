"""What a write says beside the object: the subresource, and the options of a deletion."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

PropagationPolicy = Literal["Background", "Foreground", "Orphan"]
FOREGROUND_FINALIZER = "foregroundDeletion"
ORPHAN_FINALIZER = "orphan"


class Subresource(StrEnum):
    """The subresource through which an object is updated, which decides the rules of the update."""

    NONE = ""  # the object itself, except its status
    STATUS = "status"
    SCALE = "scale"
    BINDING = "binding"  # of a pod to a node; written without the rules of updates
    FINALIZE = "finalize"  # of a namespace: its spec.finalizers, as they are given
    APPROVAL = "approval"  # of a signing request; written without the rules of updates
    EPHEMERAL_CONTAINERS = "ephemeralcontainers"  # of a pod
    RESIZE = "resize"  # of a pod: its containers' resources


AS_GIVEN = frozenset({Subresource.BINDING, Subresource.FINALIZE, Subresource.APPROVAL})


@dataclass(frozen=True)
class DeleteOptions:
    """How to delete, and under which preconditions; upstream's metav1.DeleteOptions."""

    grace_period_seconds: int | None = None
    propagation_policy: PropagationPolicy | None = None
    uid: str = ""  # precondition; empty: any
    resource_version: str = ""  # precondition; empty: any
