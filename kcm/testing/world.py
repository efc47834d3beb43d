"""A store of plain objects that carries out plans, for tests over many syncs.

It follows the store's own rules (kcm.store.rules) and guards, without Redis,
fences and races. Writes that fail are kept in `failures`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from datetime import datetime

from kcm import errors
from kcm.api import scheme
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import (
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
from kcm.store import DeleteOptions, Guard
from kcm.store.indexes import index_entries
from kcm.store.rules import (
    finishes_deletion,
    prepare_create,
    prepare_delete,
    prepare_status_update,
    prepare_update,
)
from kcm.store.writes.sweeping import Swept, held_back
from kcm.testing.views import NOW, FakeView

Key = tuple[str, str]  # resource name, object key


class World:
    """Objects, and what happens to them."""

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
        self.take_token: Callable[[str], bool] = lambda bucket: True
        self._version = 100
        self._rng = random.Random(1)
        for obj in objects:
            self.objects[_key(obj)] = obj

    def view(self) -> FakeView:
        return FakeView(*self.objects.values(), now=self.now)

    def of(self, model: type[KubeObject]) -> list[KubeObject]:
        return [obj for obj in self.objects.values() if isinstance(obj, model)]

    def find(self, obj: KubeObject) -> KubeObject | None:
        """The present state of an object, this very incarnation of it."""
        found = self.objects.get(_key(obj))
        return found if found is not None and found.uid == obj.uid else None

    def carry_out(self, plan: Plan) -> Outcome:
        """What the executor does, in small."""
        done: list[tuple[Write, KubeObject]] = []
        swept = [self._sweep(found) for found in plan.collections]
        for batch in plan.batches:
            for write in batch.writes:
                try:
                    done.append((write, self.write(write)))
                except errors.ApiError as error:
                    self.failures.append((write, error))
                    if batch.slow_start:
                        break
        outcome = Outcome(tuple(done), swept=swept)
        status = plan.status_after(outcome)
        if status is not None:
            self.write(status)
        return self.carry_out(plan.plan_after(outcome)) if plan.plan_after else outcome

    def _sweep(self, wanted: DeleteCollection) -> Swept:
        inside = [
            obj
            for (name, _), obj in list(self.objects.items())
            if name == wanted.resource.name and obj.namespace == wanted.namespace
        ]
        for obj in inside:
            self.delete(obj)
        left = [found for obj in inside if (found := self.find(obj)) is not None]
        return held_back(wanted.resource, wanted.namespace, left, len(inside) - len(left))

    def delete(self, obj: KubeObject, options: DeleteOptions | None = None) -> None:
        """Delete as a user does."""
        self.write(Delete(obj, options or DeleteOptions()))

    def write(self, write: Write) -> KubeObject:
        """Raises: ApiError."""
        self._require(write.guards)
        if isinstance(write, Create):
            resource = scheme.resource_of(write.obj)
            return self._store(None, prepare_create(write.obj, resource, self.now, rng=self._rng))
        old = self.find(write.old)
        if old is None:
            return write.old
        resource = scheme.resource_of(old)
        match write:
            case Delete(options=options):
                op, new = prepare_delete(old, resource, options, self.now)
                return self._store(old, new, gone=op == "delete")
            case Patch(change=change, status=True):
                return self._store(old, prepare_status_update(change(old), old, resource))
            case Patch(change=change):
                return self._store(old, prepare_update(change(old), old, resource))
            case Update(new=new):
                return self._store(old, prepare_update(new, old, resource))
            case Bind(new=new):
                return self._store(old, new)
            case UpdateStatus(new=new):
                return self._store(old, prepare_status_update(new, old, resource))

    def _store(self, old: KubeObject | None, new: KubeObject, *, gone: bool = False) -> KubeObject:
        if new is old and not gone:
            return new
        self._version += 1
        new = new.with_metadata(resource_version=str(self._version))
        if gone or (old is not None and finishes_deletion(new)):
            del self.objects[_key(new)]
            self.watch(Change(new, None))
        else:
            self.objects[_key(new)] = new
            self.watch(Change(old, new))
        return new

    def _require(self, guards: Iterable[Guard]) -> None:
        for guard in guards:
            if not self._holds(*guard.terms):
                raise errors.GuardFailed(f"guard failed: {guard}")

    def _holds(self, kind: str, *terms: str) -> bool:
        if kind in ("unchanged", "counted"):
            return True  # nobody else writes here
        if kind == "unindexed":
            objects = self.objects.values()
            return not any(terms[0] in index_entries(scheme.resource_of(o), o) for o in objects)
        if kind == "token":
            return self.take_token(terms[0])
        if kind == "indexed":
            carrier = self.objects.get((terms[0], terms[1]))
            return carrier is not None and terms[2] in index_entries(
                scheme.by_name(terms[0]), carrier
            )
        resource, key, uid = terms
        found = self.objects.get((resource, key))
        if kind == "absent":
            return found is None or uid not in ("", found.uid)
        return found is not None and uid in ("", found.uid) and not found.deleting


def _key(obj: KubeObject) -> Key:
    return (scheme.resource_of(obj).name, obj.key)
