"""From what a source says to what changed: pure but for what it remembers.

Source: podStorage.merge and checkAndUpdatePod in pkg/kubelet/config/config.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import structlog

from kcm.api.core_v1 import Pod
from kcm.apimachinery.times import format_time
from kcm.kubelet.types import (
    FIRST_SEEN_ANNOTATION,
    LOCAL_ANNOTATIONS,
    SOURCE_ANNOTATION,
    Operation,
    PodUpdate,
    full_name,
)

log = structlog.get_logger("kcm.kubelet")

# In the order in which they are told: what goes makes room for what comes.
ORDER = (
    Operation.REMOVE,
    Operation.ADD,
    Operation.UPDATE,
    Operation.DELETE,
    Operation.RECONCILE,
)


class PodStorage:
    """The pods of every source, by uid; used under one lock."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, Pod]] = {}
        self.seen: set[str] = set()  # sources that have told all of their pods once

    def merge(self, update: PodUpdate, now: datetime) -> list[PodUpdate]:
        """What changed, at most one update per operation."""
        source = update.source
        known = self._pods.setdefault(source, {})
        changed: dict[Operation, list[Pod]] = {op: [] for op in ORDER}
        match update.op:
            case Operation.SET:
                first = source not in self.seen
                self.seen.add(source)
                self._set(known, source, update.pods, changed, now)
            case Operation.REMOVE:
                first = False
                gone = (known.pop(pod.uid or "", None) for pod in update.pods)
                changed[Operation.REMOVE] = [pod for pod in gone if pod is not None]
            case Operation.RESTORE:
                pods = [_from(pod, source, now) for pod in update.pods]
                known.update((pod.uid or "", pod) for pod in pods)
                return [PodUpdate(Operation.RESTORE, source, pods)] if pods else []
            case _:
                first = False
                self._merge(known, _unique(source, update.pods), source, changed, now)
        updates = [PodUpdate(op, source, changed[op]) for op in ORDER if changed[op]]
        if first and not changed[Operation.ADD]:
            # Nothing to add is news, too: the source is ready.
            updates.append(PodUpdate(Operation.ADD, source, ()))
        return updates

    def _set(
        self,
        known: dict[str, Pod],
        source: str,
        pods: Sequence[Pod],
        changed: dict[Operation, list[Pod]],
        now: datetime,
    ) -> None:
        found = _unique(source, pods)
        present = {pod.uid or "" for pod in found}
        for uid in [uid for uid in known if uid not in present]:
            changed[Operation.REMOVE].append(known.pop(uid))
        self._merge(known, found, source, changed, now)

    def _merge(
        self,
        known: dict[str, Pod],
        pods: Sequence[Pod],
        source: str,
        changed: dict[Operation, list[Pod]],
        now: datetime,
    ) -> None:
        for pod in pods:
            uid = pod.uid or ""
            old = known.get(uid)
            new = known[uid] = _from(pod, source, now, old)
            operation = Operation.ADD if old is None else difference(old, new)
            if operation is not None:
                changed[operation].append(new)

    def all(self) -> list[Pod]:
        """All pods of all sources."""
        return [pod for known in self._pods.values() for pod in known.values()]


def difference(old: Pod, new: Pod) -> Operation | None:
    """What happened to a pod: UPDATE, DELETE, RECONCILE (only its status), or nothing."""
    if _meaning(old) != _meaning(new):
        return Operation.DELETE if new.deleting else Operation.UPDATE
    return Operation.RECONCILE if old.status != new.status else None


def _meaning(pod: Pod) -> tuple[object, ...]:
    """What the kubelet acts upon."""
    meta = pod.metadata
    return (
        pod.spec,
        meta.labels or {},
        meta.deletion_timestamp,
        meta.deletion_grace_period_seconds,
        {k: v for k, v in (meta.annotations or {}).items() if k not in LOCAL_ANNOTATIONS},
    )


def _from(pod: Pod, source: str, now: datetime, old: Pod | None = None) -> Pod:
    """The pod with its source and the time it was first seen noted."""
    seen = old.annotations.get(FIRST_SEEN_ANNOTATION) if old else None
    noted = {SOURCE_ANNOTATION: source, FIRST_SEEN_ANNOTATION: seen or format_time(now)}
    return pod.with_metadata(annotations={**pod.annotations, **noted})


def _unique(source: str, pods: Iterable[Pod]) -> list[Pod]:
    """Of pods with one name the first; two would fight."""
    names: dict[str, Pod] = {}
    for pod in pods:
        first = names.setdefault(full_name(pod), pod)
        if first is not pod:
            log.warning("Pod failed validation, ignoring: duplicate name", source=source,
                        pod=full_name(pod))  # fmt: skip
    return list(names.values())
