"""The kubelet's basic types: operations on pods, sources of pods, and reasons to sync a pod.

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

FILE, HTTP, API = "file", "http", "api"  # sources of pods

DEFAULT_GRACE = 30  # seconds, for pods that do not set a grace period
MINIMUM_GRACE = 2  # seconds; no container gets less
SYSTEM_CRITICAL_PRIORITY = 2_000_000_000


class Operation(StrEnum):
    """What happened to pods at their source, as upstream's PodOperation."""

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
    """Pods of one source, and what happened to them. With SET, they are all pods of the source."""

    op: Operation
    source: str
    pods: Sequence[Pod] = ()


def source_of(pod: Pod) -> str:
    """Returns the source of the pod from its annotation, or "" if it has none."""
    return pod.annotations.get(SOURCE_ANNOTATION, "")


def is_mirror_pod(pod: Pod) -> bool:
    """Reports whether the pod is a mirror pod: the copy of a static pod in the API."""
    return MIRROR_ANNOTATION in pod.annotations


def is_static_pod(pod: Pod) -> bool:
    """Reports whether the pod comes from a file or a URL."""
    return source_of(pod) not in ("", API)


def is_critical_pod(pod: Pod) -> bool:
    """Reports whether the pod is static, a mirror or of system priority, and so never evicted."""
    priority = pod.spec.priority
    return (
        is_static_pod(pod)
        or is_mirror_pod(pod)
        or (priority is not None and priority >= SYSTEM_CRITICAL_PRIORITY)
    )


def full_name(pod: Pod) -> str:
    """Returns `name_namespace`, which a static pod and its mirror have in common."""
    return f"{pod.name}_{pod.namespace}"


def format_pod(pod: Pod) -> str:
    """Returns `name_namespace(uid)`, which identifies a pod in logs and messages."""
    return f"{full_name(pod)}({pod.uid})"


def termination_grace_period(pod: Pod) -> int:
    """Returns the grace period of the pod's containers in seconds.

    That of the pod's deletion overrides that of its spec.
    """
    requested = pod.metadata.deletion_grace_period_seconds
    if pod.deleting and requested is not None:
        return requested
    own = pod.spec.termination_grace_period_seconds
    return DEFAULT_GRACE if own is None else own


def strip_runtime_name(container_id: str) -> str:
    """Returns a container id of a status without the runtime's name: without `process://`."""
    return container_id.rpartition("://")[2]
