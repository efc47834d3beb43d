"""Merges the updates of sources into changes of pods. Does no I/O, but remembers the pods.

Source: podStorage.merge and checkAndUpdatePod in pkg/kubelet/config/config.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import structlog

from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import format_time
from kcm.kubelet.types import (
    FIRST_SEEN_ANNOTATION,
    LOCAL_ANNOTATIONS,
    SOURCE_ANNOTATION,
    Operation,
    PodUpdate,
    full_name,
)

log = structlog.get_logger("kcm.kubelet")

# The order in which updates are sent: pods that are removed make room for those that are added.
ORDER = (
    Operation.REMOVE,
    Operation.ADD,
    Operation.UPDATE,
    Operation.DELETE,
    Operation.RECONCILE,
)


class PodStorage:
    """The pods of every source, by uid. Not thread-safe: the caller holds a lock."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, Pod]] = {}
        self.complete: set[str] = set()  # sources that have sent all of their pods once

    def merge(self, update: PodUpdate, now: datetime) -> list[PodUpdate]:
        """Merges an update, and returns what has changed, as at most one update per operation.

        The first SET of a source returns at least one update, even if it has no pods. With RESTORE,
        the pods are returned as they are.
        """
        source = update.source
        of_source = self._pods.setdefault(source, {})
        changed: dict[Operation, list[Pod]] = {op: [] for op in ORDER}
        match update.op:
            case Operation.SET:
                first = source not in self.complete
                self.complete.add(source)
                self._set(of_source, source, update.pods, changed, now)
            case Operation.REMOVE:
                first = False
                gone = (of_source.pop(pod.uid or "", None) for pod in update.pods)
                changed[Operation.REMOVE] = [pod for pod in gone if pod is not None]
            case Operation.RESTORE:
                pods = [_annotate(pod, source, now) for pod in update.pods]
                of_source.update((pod.uid or "", pod) for pod in pods)
                return [PodUpdate(Operation.RESTORE, source, pods)] if pods else []
            case _:
                first = False
                self._merge(of_source, _drop_duplicates(source, update.pods), source, changed, now)
        updates = [PodUpdate(op, source, changed[op]) for op in ORDER if changed[op]]
        if first and not changed[Operation.ADD]:
            # An update without pods makes the sync loop mark the source as ready.
            updates.append(PodUpdate(Operation.ADD, source, ()))
        return updates

    def _set(
        self,
        of_source: dict[str, Pod],
        source: str,
        pods: Sequence[Pod],
        changed: dict[Operation, list[Pod]],
        now: datetime,
    ) -> None:
        unique = _drop_duplicates(source, pods)
        present = {pod.uid or "" for pod in unique}
        for uid in [uid for uid in of_source if uid not in present]:
            changed[Operation.REMOVE].append(of_source.pop(uid))
        self._merge(of_source, unique, source, changed, now)

    def _merge(
        self,
        of_source: dict[str, Pod],
        pods: Sequence[Pod],
        source: str,
        changed: dict[Operation, list[Pod]],
        now: datetime,
    ) -> None:
        for pod in pods:
            uid = pod.uid or ""
            old = of_source.get(uid)
            new = of_source[uid] = _annotate(pod, source, now, old)
            operation = Operation.ADD if old is None else compute_operation(old, new)
            if operation is not None:
                changed[operation].append(new)

    def pods(self) -> list[Pod]:
        """Returns all pods of all sources."""
        return [pod for of_source in self._pods.values() for pod in of_source.values()]


def compute_operation(old: Pod, new: Pod) -> Operation | None:
    """Returns what has changed: UPDATE, DELETE, RECONCILE (only the status), or None (nothing)."""
    if _relevant_parts(old) != _relevant_parts(new):
        return Operation.DELETE if new.deleting else Operation.UPDATE
    return Operation.RECONCILE if old.status != new.status else None


def _relevant_parts(pod: Pod) -> tuple[object, ...]:
    """Returns the parts of a pod that the kubelet acts upon."""
    meta = pod.metadata
    return (
        pod.spec,
        meta.labels or {},
        meta.deletion_timestamp,
        meta.deletion_grace_period_seconds,
        {k: v for k, v in (meta.annotations or {}).items() if k not in LOCAL_ANNOTATIONS},
    )


def _annotate(pod: Pod, source: str, now: datetime, old: Pod | None = None) -> Pod:
    """Returns the pod with annotations for its source and the time when it was first seen.

    That time is taken from `old`, the pod as it was known before, if there is one.
    """
    seen = old.annotations.get(FIRST_SEEN_ANNOTATION) if old else None
    added = {SOURCE_ANNOTATION: source, FIRST_SEEN_ANNOTATION: seen or format_time(now)}
    return pod.with_metadata(annotations={**pod.annotations, **added})


def _drop_duplicates(source: str, pods: Iterable[Pod]) -> list[Pod]:
    """Returns the first pod of each name and namespace, and logs a warning about the others."""
    names: dict[str, Pod] = {}
    for pod in pods:
        first = names.setdefault(full_name(pod), pod)
        if first is not pod:
            log.warning("Pod failed validation, ignoring: duplicate name", source=source,
                        pod=full_name(pod))  # fmt: skip
    return list(names.values())
