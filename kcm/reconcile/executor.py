"""Carrying out a plan: the only code that turns controllers' wishes into writes.

Guarantees: writes go out in the plan's order, in as few script calls as slow
start allows, each under the key's fence; deleting what is gone is success;
a status that lost a race is written once more on the object as it now is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kcm import errors
from kcm.api import scheme
from kcm.api.meta_v1 import KubeObject
from kcm.reconcile.plan import (
    Batch,
    Create,
    Delete,
    Failure,
    Outcome,
    Plan,
    Update,
    UpdateStatus,
    Write,
)
from kcm.redisio import Fence
from kcm.store import Store, WriteItem, WriteResult
from kcm.store.rules import prepare_status_update, prepare_update

_NAME_ATTEMPTS = 8  # of a generated name that is taken, as upstream
_DELETE_ATTEMPTS = 5  # against an object that others keep changing


@dataclass
class _Progress:
    done: list[tuple[Write, KubeObject]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    skipped: int = 0

    def outcome(self) -> Outcome:
        return Outcome(tuple(self.done), tuple(self.failures), self.skipped)


class PlanExecutor:
    """Executes plans against a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def execute(self, plan: Plan, fence: Fence | None) -> Outcome:
        """Do what the plan says; failures of single writes are in the outcome.

        Raises: Fenced, Temporary.
        """
        progress = _Progress()
        for batch in plan.batches:
            self._run_batch(batch, fence, progress)
        if plan.status is not None:
            update = plan.status(progress.outcome())
            if update is not None:
                self._write_status(update, fence, progress)
        return progress.outcome()

    def _run_batch(self, batch: Batch, fence: Fence | None, progress: _Progress) -> None:
        started = 0
        failures_before = len(progress.failures)
        for part in _parts(batch):
            self._write(part, fence, progress)
            started += len(part)
            if batch.slow_start and len(progress.failures) > failures_before:
                progress.skipped += len(batch.writes) - started
                return

    def _write(self, writes: Sequence[Write], fence: Fence | None, progress: _Progress) -> None:
        prepared: list[tuple[Write, WriteItem]] = []
        for write in writes:
            try:
                item = self._item(write)
            except errors.ApiError as error:
                progress.failures.append(Failure(write, error))
                continue
            if item is None:
                progress.done.append((write, _present(write)))
            else:
                prepared.append((write, item))
        results = self._store.write([item for _, item in prepared], fence=fence)
        for (write, _), result in zip(prepared, results, strict=True):
            if result.status == "exists" and _name_was_drawn(write):
                result = self._draw_again(write, fence) or result  # noqa: PLW2901 - the last try
            if result.ok:
                progress.done.append((write, result.stored()))
            else:
                self._settle(write, result.error(), fence, progress)

    def _draw_again(self, write: Write, fence: Fence | None) -> WriteResult | None:
        """Create under other generated names: among 10,000 pods of one owner two draws collide."""
        for _ in range(_NAME_ATTEMPTS):
            item = self._item(write)
            if item is None:
                break
            result = self._store.write([item], fence=fence)[0]
            if result.status != "exists":
                return result
        return None

    def _item(self, write: Write) -> WriteItem | None:
        match write:
            case Create(obj, guards):
                return self._store.creation(obj, guards)
            case Update(new, old, guards):
                return self._store.modification(new, old, prepare_update, guards)
            case UpdateStatus(new, old, guards):
                return self._store.modification(new, old, prepare_status_update, guards)
            case Delete(old, options, guards):
                return self._store.deletion(old, options, guards)

    def _settle(
        self, write: Write, error: errors.KcmError, fence: Fence | None, progress: _Progress
    ) -> None:
        if isinstance(error, errors.Temporary):
            raise error
        if isinstance(write, Delete):
            self._settle_delete(write, error, fence, progress)
        else:
            progress.failures.append(Failure(write, error))

    def _settle_delete(
        self, write: Delete, error: errors.KcmError, fence: Fence | None, progress: _Progress
    ) -> None:
        """A delete means this very object: gone or replaced is done, changed is tried anew."""
        for _ in range(_DELETE_ATTEMPTS):
            if isinstance(error, errors.NotFound):
                progress.done.append((write, write.old))
                return
            if isinstance(error, errors.GuardFailed) or not isinstance(error, errors.Conflict):
                break
            fresh = self._fresh(write.old)
            if fresh is None:
                progress.done.append((write, write.old))
                return
            item = self._store.deletion(fresh, write.options, write.guards)
            if item is None:
                progress.done.append((write, fresh))
                return
            result = self._store.write([item], fence=fence)[0]
            if result.ok:
                progress.done.append((write, result.stored()))
                return
            error = result.error()
        progress.failures.append(Failure(write, error))

    def _write_status(self, update: UpdateStatus, fence: Fence | None, progress: _Progress) -> None:
        """Write a status; when others were faster, once more on the object as it now is.

        Source: updateReplicaSetStatus, pkg/controller/replicaset/replica_set_utils.go.
        """
        old = update.old
        for last in (False, True):
            item = self._store.modification(update.new, old, prepare_status_update, update.guards)
            if item is None:
                progress.done.append((update, old))
                return
            result = self._store.write([item], fence=fence)[0]
            if result.ok:
                progress.done.append((update, result.stored()))
                return
            fresh = self._fresh(old) if result.status == "conflict" and not last else None
            if fresh is None:
                break
            old = fresh
        self._settle(update, result.error(), fence, progress)

    def _fresh(self, old: KubeObject) -> KubeObject | None:
        """The object as it is now; None when it is gone or another took its name."""
        try:
            fresh = self._store.get(scheme.resource_of(old), old.key)
        except errors.NotFound:
            return None
        return fresh if fresh.uid == old.uid else None


def _name_was_drawn(write: Write) -> bool:
    return isinstance(write, Create) and not write.obj.name


def _present(write: Write) -> KubeObject:
    return write.obj if isinstance(write, Create) else write.old


def _parts(batch: Batch) -> list[Sequence[Write]]:
    """The batch whole, or cut into 1, 2, 4 ... writes for a slow start."""
    if not batch.slow_start:
        return [batch.writes]
    parts, at, size = [], 0, 1
    while at < len(batch.writes):
        parts.append(batch.writes[at : at + size])
        at, size = at + size, size * 2
    return parts
