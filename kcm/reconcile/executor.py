"""Carries out plans: the only code that turns the plans of controllers into writes.

Writes are sent in the plan's order, in as few script calls as slow start allows, each under the
key's fence. A create in a terminating namespace is skipped and is no failure. A patch, a deletion
or a status of an object that is gone counts as done. A write that another write overtook is
repeated on the latest version, if its kind allows that. An object of which only metadata is cached
is read first, unless the store changes it by its metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kcm import errors
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.reconcile.consistency import NO_EXPECTATIONS, SyncExpectations
from kcm.reconcile.plan import (
    AnyPlan,
    Approve,
    Batch,
    Bind,
    Create,
    Delete,
    DeleteCollection,
    Failure,
    Outcome,
    Patch,
    RequireDeleting,
    RewriteObjects,
    Step,
    Update,
    UpdateStatus,
    Write,
)
from kcm.redisio import Fence
from kcm.store import Pattern, Subresource, WriteItem, WriteResult, WriteStatus
from kcm.store.objects import ObjectStore
from kcm.store.writes.collections import CollectionDeletion, Rewriting

# How often a write is tried when other writes overtake it. A generated name is drawn eight times
# and a status is written twice, as upstream does. An Update is right for one version only.
_ATTEMPTS: dict[type[Write], int] = {
    Create: 8,
    Update: 1,
    UpdateStatus: 2,
    Patch: 5,
    Bind: 1,
    Approve: 1,
    Delete: 5,
}


_GONE = frozenset({WriteStatus.NOT_FOUND, WriteStatus.UID})


@dataclass
class _Progress:
    """The results of a plan's writes so far, and the latest states of their objects."""

    expectations: SyncExpectations
    done: list[tuple[Write, KubeObject]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    skipped: int = 0
    known: dict[str, KubeObject] = field(default_factory=dict)  # by uid, newer than the cache
    optional: bool = False  # whether failures of the present batch do not fail the key
    failed: set[str] = field(default_factory=set)  # uids of objects whose later writes are skipped

    deletions: list[CollectionDeletion] = field(default_factory=list)
    rewritings: list[Rewriting] = field(default_factory=list)

    def outcome(self) -> Outcome:
        return Outcome(
            tuple(self.done),
            tuple(self.failures),
            self.skipped,
            tuple(self.deletions),
            tuple(self.rewritings),
        )

    def old(self, write: Update | UpdateStatus | Patch | Bind | Approve | Delete) -> KubeObject:
        """Returns the newest known state of the object that a write changes."""
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
        """Returns the writes whose objects have no failed write yet. The others count as
        skipped.
        """
        if not self.failed:
            return list(writes)
        able = [w for w in writes if isinstance(w, Create) or w.old.uid not in self.failed]
        self.skipped += len(writes) - len(able)
        return able


class PlanExecutor:
    """Carries out plans with a store."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def execute(
        self,
        plan: AnyPlan,
        fence: Fence | None,
        expectations: SyncExpectations = NO_EXPECTATIONS,
    ) -> Outcome:
        """Makes the writes of a plan and returns their outcome, which has the failures of single
        writes.

        Raises Fenced and Temporary.
        """
        progress = _Progress(expectations)
        for number, step in enumerate(plan.steps):
            if not self._run_step(step, fence, progress):
                rest = plan.steps[number + 1 :]
                progress.skipped += sum(len(b.writes) for b in rest if isinstance(b, Batch))
                return progress.outcome()
        progress.optional = False
        update = plan.status_update(progress.outcome())
        if update is not None:
            self._write([update], fence, progress)
        return progress.outcome()

    def _run_step(self, step: Step, fence: Fence | None, progress: _Progress) -> bool:
        """Carries out a step, and reports whether the plan goes on."""
        store = self._store
        match step:
            case RequireDeleting(old):
                [present] = store.get_all([(old.resource, old.key)])
                if present is None:
                    return False
                if present.uid != old.uid or not present.deleting:
                    raise errors.CacheNotSynced(
                        f"{old.resource.name} {old.key} is not the one that the cache has"
                    )
            case DeleteCollection(resource, namespace):
                deletion = store.delete_collection(resource, namespace, fence=fence)
                progress.deletions.append(deletion)
            case RewriteObjects(resource, after, count):
                rewriting = store.rewrite_page(resource, after, count, fence=fence)
                progress.rewritings.append(rewriting)
            case Batch():
                return self._run_batch(step, fence, progress) or not step.essential
        return True

    def _run_batch(self, batch: Batch, fence: Fence | None, progress: _Progress) -> bool:
        """Makes the writes of a batch, and reports whether all succeeded."""
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
        """Makes writes in one call, and repeats those that other writes overtook."""
        waiting = progress.startable(writes)
        needs_whole = not self._store.takes_partial_objects
        stale = [write for write in waiting if needs_whole and _is_partial(write, progress)]
        attempt = 0
        while waiting:
            attempt += 1
            gone = self._read(stale, progress)
            prepared = self._prepare([w for w in waiting if id(w) not in gone], progress)
            items = [item for _, item in prepared]
            progress.expectations.expect_writes(items)
            results = self._store.write(items, fence=fence)
            progress.expectations.observe_results(results)
            waiting = []
            for (write, _), result in zip(prepared, results, strict=True):
                if _is_overtaken(write, result) and attempt < _ATTEMPTS[type(write)]:
                    waiting.append(write)
                else:
                    _settle(write, result, progress)
            stale = [write for write in waiting if not isinstance(write, Create)]

    def _read(self, writes: Sequence[Write], progress: _Progress) -> set[int]:
        """Reads the objects of `writes` from the store into `progress`.

        Returns the ids (of Python) of the writes whose object is gone or replaced, which are
        settled.
        """
        targets = [write.old for write in writes if not isinstance(write, Create)]
        present = self._store.get_all([(old.resource, old.key) for old in targets])
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
            elif not isinstance(write, Create):  # there is nothing to change
                progress.done.append((write, progress.old(write)))
        return prepared

    def _item(
        self, write: Write, progress: _Progress, models: dict[int, Pattern]
    ) -> WriteItem | None:
        """Returns the item of a write, None if there is nothing to change.

        `models` are the first creations of each object, by the Python id of the object.
        """
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
            case Patch(_, change, guards):
                old, part = progress.old(write), _part(write)
                new = change(old)
                if new is old:
                    return None
                return store.build_update(new, old, subresource=part, guards=guards)
            case Bind(new, _, guards):
                old, part = progress.old(write), Subresource.BINDING
                return store.build_update(new, old, subresource=part, guards=guards)
            case Approve(new, _, guards):
                old, part = progress.old(write), Subresource.APPROVAL
                return store.build_update(new, old, subresource=part, guards=guards)
            case Delete(_, options, guards):
                return store.build_delete(progress.old(write), options, guards)


def _part(patch: Patch) -> Subresource:
    if patch.finalize:
        return Subresource.FINALIZE
    if patch.scale:
        return Subresource.SCALE
    return Subresource.STATUS if patch.status else Subresource.NONE


def _is_partial(write: Write, progress: _Progress) -> bool:
    return not isinstance(write, Create) and progress.old(write).metadata_only


def _is_overtaken(write: Write, result: WriteResult) -> bool:
    """Reports whether the write may be tried again, on the latest version or under another name."""
    if isinstance(write, Create):
        return result.status is WriteStatus.EXISTS and not write.obj.name
    return result.status is WriteStatus.CONFLICT


def _settle(write: Write, result: WriteResult, progress: _Progress) -> None:
    if result.ok:
        progress.did(write, result.get_stored())
    elif isinstance(result.error(), errors.NamespaceTerminating):
        # As upstream, this is no failure, and nothing is to be tried again: the controller's other
        # objects are deleted with the namespace.
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
        progress.fail(write, error or errors.NotFound.of(old.resource.name, old.name))


def _parts(batch: Batch) -> list[Sequence[Write]]:
    """Returns the writes as one part, or in parts of 1, 2, 4 and so on for a slow start."""
    if not batch.slow_start:
        return [batch.writes]
    parts, at, size = [], 0, 1
    while at < len(batch.writes):
        parts.append(batch.writes[at : at + size])
        at, size = at + size, size * 2
    return parts
