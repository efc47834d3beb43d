"""Words of the kubelet: operations on pods, where pods come from, why a pod is synced.

Source: pkg/kubelet/types/{pod_update,constants}.go, Kubernetes 1.33; RESTORE is 1.12's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kcm.api.core_v1 import Pod

SOURCE_ANNOTATION = "kubernetes.io/config.source"
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
FIRST_SEEN_ANNOTATION = "kubernetes.io/config.seen"
HASH_ANNOTATION = "kubernetes.io/config.hash"
LOCAL_ANNOTATIONS = (SOURCE_ANNOTATION, MIRROR_ANNOTATION, FIRST_SEEN_ANNOTATION, HASH_ANNOTATION)

FILE, HTTP, API = "file", "http", "api"  # sources

MINIMUM_GRACE = 2  # seconds that every container gets to end
SYSTEM_CRITICAL_PRIORITY = 2_000_000_000


class Operation(StrEnum):
    """What became of pods at their source."""

    SET = "SET"
    ADD = "ADD"
    DELETE = "DELETE"
    REMOVE = "REMOVE"
    UPDATE = "UPDATE"
    RECONCILE = "RECONCILE"
    RESTORE = "RESTORE"


class SyncPodType(StrEnum):
    """Why a pod is synced."""

    SYNC = "sync"
    UPDATE = "update"
    CREATE = "create"
    KILL = "kill"


@dataclass(frozen=True)
class PodUpdate:
    """What a source says; with SET, all of its pods."""

    op: Operation
    source: str
    pods: Sequence[Pod] = ()


def source_of(pod: Pod) -> str:
    """The source that a pod came from, "" for none that is noted."""
    return pod.annotations.get(SOURCE_ANNOTATION, "")


def is_mirror_pod(pod: Pod) -> bool:
    """Whether it stands in the API for a static pod."""
    return MIRROR_ANNOTATION in pod.annotations


def is_static_pod(pod: Pod) -> bool:
    """Whether it comes from a file or a URL."""
    return source_of(pod) not in ("", API)


def is_critical(pod: Pod) -> bool:
    """Whether other pods make room for it."""
    priority = pod.spec.priority
    return (
        is_static_pod(pod)
        or is_mirror_pod(pod)
        or (priority is not None and priority >= SYSTEM_CRITICAL_PRIORITY)
    )


def full_name(pod: Pod) -> str:
    """`name_namespace`, under which a static pod and its mirror find each other."""
    return f"{pod.name}_{pod.namespace}"


def described(pod: Pod) -> str:
    """A pod in texts: `name_namespace(uid)`."""
    return f"{full_name(pod)}({pod.uid})"


def deadline_of(pod: Pod) -> int:
    """Seconds that the pod's containers have to end: as its deletion says, else its spec."""
    asked = pod.metadata.deletion_grace_period_seconds
    if pod.deleting and asked is not None:
        return asked
    own = pod.spec.termination_grace_period_seconds
    return 30 if own is None else own
