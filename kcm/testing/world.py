"""A store in memory on which the plans of controllers are carried out, for tests over many syncs.

Plans are carried out by the code that carries them out in production (`kcm.reconcile.carrying`), on
the store's real rules, admission, guards and conflicts (`kcm.store.memory`). There is no work
queue: tests decide when a key is synced, and what they see when the cache lags.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.reconcile.carrying import CarriedPlan, PlanCarrier
from kcm.reconcile.cloudprovider.caller import CloudCaller
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import AnyPlan, Delete, Event, Failure, Outcome, Plan, Write
from kcm.store import DeleteOptions, Store, WatchEntry, WriteItem
from kcm.store.admission.namespaces import build as build_namespaces
from kcm.store.damage import decode_object
from kcm.store.memory import MemoryIO
from kcm.store.namespaces import SYSTEM
from kcm.store.writes.items import Operation
from kcm.testing.clock import FakeClock
from kcm.testing.views import NOW, FakeView

T = TypeVar("T", bound=KubeObject)
Key = tuple[str, str]  # resource name, object key
_FIRST_VERSION = 100  # the counter after the given objects, whose versions are low


class World:
    """Holds objects, and carries out the plans that controllers compute from them.

    `objects` are the objects as a cache without delay has them. At first they are the given ones,
    with the resourceVersions that they have; `watch` gets every later change.
    """

    def __init__(
        self,
        *objects: KubeObject,
        now: datetime = NOW,
        watch: Callable[[Change], None] = lambda change: None,
    ) -> None:
        self.clock = FakeClock(now)
        self.io = MemoryIO(self.clock)
        self.store = Store(self.io, self.clock, random.Random(1))
        self.objects: dict[Key, KubeObject] = {}
        self.failures: list[Failure] = []  # of all plans
        self.events: list[Event] = []  # that all plans recorded
        self.cloud: CloudCaller | None = None  # makes the calls of plans
        self.watch: Callable[[Change], None] = lambda change: None
        self._position = 0  # the resourceVersion up to which `objects` has all changes
        self._create_namespaces(objects)
        for obj in objects:
            self.io.set_counter(int(obj.metadata.resource_version or 1) - 1)
            self._put(WriteItem("create", obj.resource, obj, anywhere=True))
        self._observe()
        self.io.set_counter(max(self._position, _FIRST_VERSION))
        self.watch = watch

    @property
    def now(self) -> datetime:
        """The time of the world. It may be set."""
        return self.clock.now()

    @now.setter
    def now(self, now: datetime) -> None:
        self.clock.step((now - self.now).total_seconds())

    def record(self, event: Event, component: str) -> None:
        """Takes an Event of a plan."""
        self.events.append(event)

    # --- objects

    def view(self) -> FakeView:
        return FakeView(*self.objects.values(), now=self.now, position=self._position)

    def of(self, model: type[T]) -> list[T]:
        return [obj for obj in self.objects.values() if isinstance(obj, model)]

    def find(self, obj: T) -> T | None:
        """Returns the present state of the object with this uid, or None."""
        present = self.objects.get((obj.resource.name, obj.key))
        return present if isinstance(present, type(obj)) and present.uid == obj.uid else None

    def put(self, *objects: KubeObject) -> None:
        """Stores objects as they are, whatever is stored, without rules and admission."""
        for obj in objects:
            present = self.objects.get((obj.resource.name, obj.key))
            if present is not None and present.uid != obj.uid:
                self.remove(present)
                present = None
            op: Operation = "create" if present is None else "update"
            self._put(WriteItem(op, obj.resource, obj, anywhere=True))
            self._observe()

    def remove(self, *objects: KubeObject) -> None:
        """Removes objects, whatever their finalizers are."""
        for obj in objects:
            self._put(WriteItem("delete", obj.resource, obj))
        self._observe()

    def delete(self, obj: KubeObject, options: DeleteOptions | None = None) -> None:
        """Deletes an object, as a user would."""
        self.write(Delete(obj, options or DeleteOptions()))

    def write(self, write: Write) -> KubeObject:
        """Carries out one write, and returns the object. Raises the error if it fails."""
        outcome = self.carry_out(Plan().then(write))
        if outcome.failures:
            raise self.failures.pop().error
        return outcome.done[0][1]

    # --- plans

    def carry_out(self, plan: AnyPlan) -> Outcome:
        """Carries out the plan of a pass, or that of a sync and those that follow it.

        Returns the outcome of the last one.
        """
        if isinstance(plan, Plan):
            return self.finish(plan).outcome
        outcome = PlanCarrier("test", self.store, self).carry_out_pass(plan, self.io, None)
        self.failures += outcome.failures
        self._observe()
        return outcome

    def finish(
        self, plan: Plan, remember: Callable[[CarriedPlan], None] = lambda carried: None
    ) -> CarriedPlan:
        """Carries out a plan and those that follow it, as the runner does, and returns the last
        one.

        `remember` is called for each of them after its writes. Calls are made only if `cloud` is
        set.
        """

        def keep(carried: CarriedPlan) -> None:
            self.failures += carried.outcome.failures
            self._observe()
            remember(carried)

        carrier = PlanCarrier("test", self.store, self, cloud=self.cloud)
        while True:
            carried = carrier.carry_out(plan, None, remember=keep)
            if not carried.calls_cloud or self.cloud is None:
                return carried
            plan = carrier.call_cloud(carried)

    def _create_namespaces(self, objects: tuple[KubeObject, ...]) -> None:
        """Creates the namespaces of objects that are not among them; the store creates those of the
        system.
        """
        given = {obj.name for obj in objects if obj.resource.name == "namespaces"}
        wanted = {obj.namespace for obj in objects if obj.namespace} - given - {*SYSTEM}
        for namespace in build_namespaces(*sorted(wanted)) if wanted else ():
            self.store.create(namespace)

    def _put(self, item: WriteItem) -> None:
        self.store.write([item])[0].get_stored()

    def _observe(self) -> None:
        """Reads the changes of all kinds, as an informer does."""
        resources: dict[Resource, int] = dict.fromkeys(
            self.store.scheme.resources(), self._position
        )
        entries = self.store.read_changes(resources, 0).entries
        for entry in sorted(entries, key=lambda entry: entry.resource_version):
            self._see(entry)

    def _see(self, entry: WatchEntry) -> None:
        self._position = entry.resource_version
        key = (entry.resource.name, entry.key)
        obj = decode_object(entry.resource, entry.key, entry.raw)
        old = self.objects.pop(key, None)
        if entry.type == "DELETED":
            self.watch(Change(obj, None))
            return
        self.objects[key] = obj
        self.watch(Change(old, obj))
