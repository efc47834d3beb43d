"""A store of plain objects in memory that carries out plans, for tests over many syncs.

It follows the store's rules (`kcm.store.rules`) and guards, but has no Redis, fencing tokens or
races. Writes that failed are in `failures`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime

from kcm import errors
from kcm.api.core_v1 import ResourceQuota
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.cloudprovider.caller import CloudCaller
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import (
    Approve,
    Bind,
    Create,
    Delete,
    DeleteCollection,
    Outcome,
    Patch,
    Plan,
    Update,
    UpdateStatus,
    Write,
)
from kcm.store import DeleteOptions
from kcm.store.admission.quotas import grows
from kcm.store.indexes import index_entries
from kcm.store.rules import (
    Subresource,
    finishes_deletion,
    prepare_create,
    prepare_delete,
    prepare_modification,
)
from kcm.store.writes.collections import CollectionDeletion, summarize_rest
from kcm.store.writes.guards import (
    Absent,
    EntryUnchanged,
    Exists,
    Guard,
    Indexed,
    NothingCharged,
    QuotasUnchanged,
    TokenAvailable,
    Unindexed,
)
from kcm.store.writes.rewriting import Rewriting
from kcm.testing.views import NOW, FakeView

Key = tuple[str, str]  # resource name, object key


class World:
    """Holds objects, and carries out the plans that controllers compute from them."""

    def __init__(
        self,
        *objects: KubeObject,
        now: datetime = NOW,
        watch: Callable[[Change], None] = lambda change: None,
    ) -> None:
        self.now = now
        self.objects: dict[Key, KubeObject] = {}
        self.failures: list[tuple[Write, Exception]] = []
        self.watch = watch
        self.cloud: CloudCaller | None = None  # makes the calls of plans
        self.take_token: Callable[[str], bool] = lambda bucket: True
        self._version = 100
        # By index entry: the version at which an object got or lost it, and the `since` and
        # `stamp` of the guard of that write.
        self._moved: dict[str, tuple[int, tuple[int, str] | None]] = {}
        # By namespace and resource: the version of the last charge.
        self._charged: dict[Key, int] = {}
        self._rng = random.Random(1)
        for obj in objects:
            self.objects[_key(obj)] = obj

    def view(self) -> FakeView:
        return FakeView(*self.objects.values(), now=self.now, position=self._version)

    def of(self, model: type[KubeObject]) -> list[KubeObject]:
        return [obj for obj in self.objects.values() if isinstance(obj, model)]

    def find(self, obj: KubeObject) -> KubeObject | None:
        """Returns the present state of the object with this uid, or None."""
        present = self.objects.get(_key(obj))
        return present if present is not None and present.uid == obj.uid else None

    def carry_out(self, plan: Plan) -> Outcome:
        """Carries out the writes of a plan, as the executor does."""
        done: list[tuple[Write, KubeObject]] = []
        deletions = [self._delete_collection(collection) for collection in plan.collections]
        rewritings = [Rewriting() for _ in plan.rewrites]  # it keeps objects, not their JSON
        for batch in plan.batches:
            for write in batch.writes:
                try:
                    done.append((write, self.write(write)))
                except errors.ApiError as error:
                    self.failures.append((write, error))
                    if batch.slow_start:
                        break
        outcome = Outcome(tuple(done), deletions=deletions, rewritings=rewritings)
        status = plan.status_update(outcome)
        if status is not None:
            self.write(status)
        if plan.calls and self.cloud is not None:
            outcome = replace(outcome, answers=self.cloud.make(plan.calls))
        return self.carry_out(plan.plan_after(outcome)) if plan.plan_after else outcome

    def _delete_collection(self, wanted: DeleteCollection) -> CollectionDeletion:
        inside = [
            obj
            for (name, _), obj in list(self.objects.items())
            if name == wanted.resource.name and obj.namespace == wanted.namespace
        ]
        for obj in inside:
            self.delete(obj)
        left = [present for obj in inside if (present := self.find(obj)) is not None]
        return summarize_rest(wanted.resource, wanted.namespace, left, len(inside) - len(left))

    def delete(self, obj: KubeObject, options: DeleteOptions | None = None) -> None:
        """Deletes an object, as a user would."""
        self.write(Delete(obj, options or DeleteOptions()))

    def write(self, write: Write) -> KubeObject:
        """Carries out one write, and returns the object. Raises ApiError if it fails."""
        self._require(write.guards)
        if isinstance(write, Create):
            resource = write.obj.resource
            made = prepare_create(write.obj, resource, self.now, rng=self._rng)
            return self._store(None, made, write)
        old = self.find(write.old)
        if old is None:
            return write.old
        if isinstance(write, Delete):
            op, new = prepare_delete(old, old.resource, write.options, self.now)
            return self._store(old, new, write, gone=op == "delete")
        return self._store(old, _apply_write(write, old), write)

    def _store(
        self, old: KubeObject | None, new: KubeObject, write: Write, *, gone: bool = False
    ) -> KubeObject:
        if new is old and not gone:
            return new
        self._version += 1
        new = new.with_metadata(resource_version=str(self._version))
        if gone or (old is not None and finishes_deletion(new)):
            del self.objects[_key(new)]
            change = Change(new, None)
        else:
            self.objects[_key(new)] = new
            change = Change(old, new)
        self._record_history(old, new, write.guards)
        self.watch(change)
        return new

    def _record_history(
        self, old: KubeObject | None, new: KubeObject, guards: Iterable[Guard]
    ) -> None:
        """Records what guards depend on: changes of index entries, and charges to quotas."""
        resource = new.resource
        before = set(index_entries(resource, old)) if old is not None else set()
        after = set(index_entries(resource, new)) if self.find(new) is not None else set()
        asked = {g.entry: (g.since, g.stamp) for g in guards if isinstance(g, EntryUnchanged)}
        for entry in before ^ after:
            stamp = asked.get(entry) if entry in after else None
            self._moved[entry] = (self._version, stamp)
        if self._quotas(new.namespace or "") and (
            old is None or grows(resource, new, old, self.now)
        ):
            self._charged[new.namespace or "", resource.name] = self._version

    def _require(self, guards: Iterable[Guard]) -> None:
        for guard in guards:
            if not self._holds(guard):
                raise errors.GuardFailed(f"guard failed: {guard}")

    def _holds(self, guard: Guard) -> bool:
        """Reports whether a guard holds; see `kcm.store.writes.guards`.

        Takes a token if the guard is a TokenAvailable that holds.
        """
        match guard:
            case Exists() | Absent() | Indexed():
                return guard.holds_for(self.objects.get((guard.resource, guard.key)))
            case Unindexed(entry):
                objects = self.objects.values()
                return not any(entry in index_entries(o.resource, o) for o in objects)
            case TokenAvailable(bucket):
                return self.take_token(bucket)
            case QuotasUnchanged(namespace, versions):
                return self._quotas(namespace) == dict(versions)
            case NothingCharged(namespace, since):
                charged = self._charged
                return all(charged.get((namespace, kind), 0) <= version for kind, version in since)
            case EntryUnchanged(entry, since, stamp):
                moved_at, own = self._moved.get(entry, (0, None))
                return moved_at <= since or (stamp != "" and own == (since, stamp))

    def _quotas(self, namespace: str) -> dict[str, str]:
        """Returns the resourceVersions of the namespace's quotas by name."""
        return {
            obj.name: obj.metadata.resource_version or ""
            for obj in self.objects.values()
            if isinstance(obj, ResourceQuota) and obj.namespace == namespace
        }


def _apply_write(
    write: Update | UpdateStatus | Patch | Bind | Approve, old: KubeObject
) -> KubeObject:
    """Returns the object after the write, prepared as the store does."""
    resource = old.resource
    match write:
        case Patch(change=change, status=status):
            part = Subresource.STATUS if status else Subresource.NONE
            return prepare_modification(change(old), old, resource, part)
        case Update(new=new):
            return prepare_modification(new, old, resource)
        case Bind(new=new):
            return prepare_modification(new, old, resource, Subresource.BINDING)
        case Approve(new=new):
            return prepare_modification(new, old, resource, Subresource.APPROVAL)
        case UpdateStatus(new=new):
            return prepare_modification(new, old, resource, Subresource.STATUS)


def _key(obj: KubeObject) -> Key:
    return (obj.resource.name, obj.key)
