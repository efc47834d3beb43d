"""Carrying out a plan: the only code that turns controllers' wishes into writes.

Guarantees: writes go out in the plan's order, in as few script calls as slow
start allows, each under the key's fence; creates in a namespace that terminates
are left out in silence; patches, deletions and the status of
what is gone are done with; a write that lost a race and may be repeated is
repeated on the object as it now is; objects of which only the metadata is
cached are read first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kcm import errors
from kcm.api import scheme
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.informers.views import PartialObjectMetadata
from kcm.reconcile.consistency import NO_NOTES, Notes
from kcm.reconcile.plan import (
    Batch,
    Bind,
    Create,
    Delete,
    Failure,
    Outcome,
    Patch,
    Plan,
    Update,
    UpdateStatus,
    Write,
)
from kcm.redisio import Fence
from kcm.store import Pattern, Subresource, WriteItem, WriteResult, WriteStatus
from kcm.store.objects import ObjectStore
from kcm.store.writes.collections import CollectionDeletion

# How often a write is tried when others are faster. A generated name is drawn
# eight times and a status written twice, as upstream does; an Update says what
# the object shall be for one version of it only.
_ATTEMPTS: dict[type[Write], int] = {
    Create: 8,
    Update: 1,
    UpdateStatus: 2,
    Patch: 5,
    Bind: 1,
    Delete: 5,
}


_GONE = frozenset({WriteStatus.NOT_FOUND, WriteStatus.UID})


@dataclass
class _Progress:
    """What happened so far to a plan's writes, and to the objects they are about."""

    notes: Notes
    done: list[tuple[Write, KubeObject]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    skipped: int = 0
    known: dict[str, KubeObject] = field(default_factory=dict)  # by uid, newer than the cache
    optional: bool = False  # whether the present batch's failures are none of the key
    failed: set[str] = field(default_factory=set)  # uids whose later writes are left out

    deletions: list[CollectionDeletion] = field(default_factory=list)

    def outcome(self) -> Outcome:
        return Outcome(tuple(self.done), tuple(self.failures), self.skipped, tuple(self.deletions))

    def old(self, write: Update | UpdateStatus | Patch | Bind | Delete) -> KubeObject:
        """The newest state we know of the object that a write is about."""
        return self.known.get(write.old.uid, write.old)

    def did(self, write: Write, obj: KubeObject) -> None:
        self.done.append((write, obj))
        if not isinstance(write, Create):
            self.known[obj.uid] = obj

    def fail(self, write: Write, error: errors.KcmError) -> None:
        if isinstance(error, errors.Temporary):
            raise error
        self.failures.append(Failure(write, error, self.optional))
        if not isinstance(write, Create):
            self.failed.add(write.old.uid)

    def startable(self, writes: Sequence[Write]) -> list[Write]:
        """Those whose objects no earlier write has failed on; the others are skipped."""
        if not self.failed:
            return list(writes)
        able = [w for w in writes if isinstance(w, Create) or w.old.uid not in self.failed]
        self.skipped += len(writes) - len(able)
        return able


class PlanExecutor:
    """Executes plans against a store."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def execute(self, plan: Plan, fence: Fence | None, notes: Notes = NO_NOTES) -> Outcome:
        """Do what the plan says; failures of single writes are in the outcome.

        Raises: Fenced, Temporary.
        """
        progress = _Progress(notes)
        for collection in plan.collections:
            resource, namespace = collection.resource, collection.namespace
            progress.deletions.append(
                self._store.delete_collection(resource, namespace, fence=fence)
            )
        for number, batch in enumerate(plan.batches):
            if not self._run_batch(batch, fence, progress) and batch.essential:
                progress.skipped += sum(len(b.writes) for b in plan.batches[number + 1 :])
                return progress.outcome()
        progress.optional = False
        update = plan.status_update(progress.outcome())
        if update is not None:
            self._write([update], fence, progress)
        return progress.outcome()

    def _run_batch(self, batch: Batch, fence: Fence | None, progress: _Progress) -> bool:
        """Whether every write of the batch succeeded."""
        started = 0
        failures_before = len(progress.failures)
        progress.optional = batch.optional
        for part in _parts(batch):
            self._write(part, fence, progress)
            started += len(part)
            if batch.slow_start and len(progress.failures) > failures_before:
                progress.skipped += len(batch.writes) - started
                break
        return len(progress.failures) == failures_before

    def _write(self, writes: Sequence[Write], fence: Fence | None, progress: _Progress) -> None:
        """Write what may be written together, and what others overtook again."""
        waiting = progress.startable(writes)
        stale = [write for write in waiting if _is_partial(write, progress)]
        attempt = 0
        while waiting:
            attempt += 1
            gone = self._read(stale, progress)
            prepared = self._prepare([w for w in waiting if id(w) not in gone], progress)
            items = [item for _, item in prepared]
            progress.notes.note_writes(items)
            results = self._store.write(items, fence=fence)
            progress.notes.note_results(results)
            waiting = []
            for (write, _), result in zip(prepared, results, strict=True):
                if _is_overtaken(write, result) and attempt < _ATTEMPTS[type(write)]:
                    waiting.append(write)
                else:
                    _settle(write, result, progress)
            stale = [write for write in waiting if not isinstance(write, Create)]

    def _read(self, writes: Sequence[Write], progress: _Progress) -> set[int]:
        """Learn the present state of what `writes` are about; returns the ids of those whose
        object is gone or replaced, which are settled."""
        targets = [write.old for write in writes if not isinstance(write, Create)]
        present = self._store.get_all([(scheme.resource_of(old), old.key) for old in targets])
        gone = set()
        for write, old, fresh in zip(writes, targets, present, strict=True):
            if fresh is not None and fresh.uid == old.uid:
                progress.known[old.uid] = fresh
            else:
                gone.add(id(write))
                _settle_gone(write, old, progress)
        return gone

    def _prepare(
        self, writes: Sequence[Write], progress: _Progress
    ) -> list[tuple[Write, WriteItem]]:
        prepared: list[tuple[Write, WriteItem]] = []
        models: dict[int, Pattern] = {}
        for write in writes:
            try:
                item = self._item(write, progress, models)
            except errors.ApiError as error:
                progress.fail(write, error)
                continue
            if item is not None:
                prepared.append((write, item))
            elif not isinstance(write, Create):  # nothing to change
                progress.done.append((write, progress.old(write)))
        return prepared

    def _item(
        self, write: Write, progress: _Progress, models: dict[int, Pattern]
    ) -> WriteItem | None:
        """The item of a write; `models` are the first creations by the id of their object."""
        store = self._store
        match write:
            case Create(obj, guards):
                item = store.build_create(obj, guards, like=models.get(id(obj)))
                models.setdefault(id(obj), Pattern(item))
                return item
            case Update(new, _, guards):
                return store.build_update(new, progress.old(write), guards=guards)
            case UpdateStatus(new, _, guards):
                old, part = progress.old(write), Subresource.STATUS
                return store.build_update(new, old, subresource=part, guards=guards)
            case Patch(_, change, guards, status):
                old = progress.old(write)
                part = Subresource.STATUS if status else Subresource.NONE
                new = change(old)
                if new is old:
                    return None
                return store.build_update(new, old, subresource=part, guards=guards)
            case Bind(new, _, guards):
                old, part = progress.old(write), Subresource.BINDING
                return store.build_update(new, old, subresource=part, guards=guards)
            case Delete(_, options, guards):
                return store.build_delete(progress.old(write), options, guards)


def _is_partial(write: Write, progress: _Progress) -> bool:
    return not isinstance(write, Create) and isinstance(progress.old(write), PartialObjectMetadata)


def _is_overtaken(write: Write, result: WriteResult) -> bool:
    """Whether the write may be tried again on the object as it now is, or under another name."""
    if isinstance(write, Create):
        return result.status is WriteStatus.EXISTS and not write.obj.name
    return result.status is WriteStatus.CONFLICT


def _settle(write: Write, result: WriteResult, progress: _Progress) -> None:
    if result.ok:
        progress.did(write, result.get_stored())
    elif isinstance(result.error(), errors.NamespaceTerminating):
        # Whatever else this controller wanted there ends with the namespace, as upstream
        # has it: nothing failed, and nothing is to be tried again.
        progress.skipped += 1
    elif result.status in _GONE and not isinstance(write, Create):
        _settle_gone(write, write.old, progress, result.error())
    else:
        progress.fail(write, result.error())


def _settle_gone(
    write: Write, old: KubeObject, progress: _Progress, error: errors.KcmError | None = None
) -> None:
    """Records a write whose object is gone, or whose name another object has taken.

    An UpdateStatus, Patch or Delete counts as done. Any other write fails with `error`, or with
    NotFound if that is None. Raises `error` if it is Temporary.
    """
    if isinstance(write, UpdateStatus | Patch | Delete):
        progress.done.append((write, old))
    else:
        progress.fail(write, error or errors.NotFound.of(scheme.resource_of(old).name, old.name))


def _parts(batch: Batch) -> list[Sequence[Write]]:
    """The batch whole, or cut into 1, 2, 4 ... writes for a slow start."""
    if not batch.slow_start:
        return [batch.writes]
    parts, at, size = [], 0, 1
    while at < len(batch.writes):
        parts.append(batch.writes[at : at + size])
        at, size = at + size, size * 2
    return parts
