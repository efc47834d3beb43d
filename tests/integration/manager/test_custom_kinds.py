"""Tests that the garbage collector's and the ingester's processes learn of custom kinds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.apiextensions.registration import custom_names, unregister
from kcm.apimachinery.meta_v1 import KubeObject, OwnerReference
from kcm.clock import RealClock
from kcm.controllers.garbagecollector import GarbageCollector
from kcm.coordination import FencedLease
from kcm.manager.context.context import ControllerContext, build_context
from kcm.manager.dispatch import KindDispatcher
from kcm.manager.manager import KindFollower, Manager
from kcm.manager.recovery import recover
from kcm.reconcile.plan import Delete
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import DeleteOptions, Store, Subresource
from kcm.store.definitions import Definitions
from kcm.store.eventbus import EventBus
from kcm.testing.waiting import until
from tests.new_objects import pod
from tests.unit.apiextensions.samples import WHOLE, accept_names, definition, struct

NAME = "crontabs.example.com"
DEFINITIONS = CustomResourceDefinition.resource


@pytest.fixture
def store(io: RedisIO) -> Store:
    return Store(io)


@pytest.fixture
def context(io: RedisIO, settings: Settings) -> Iterator[ControllerContext]:
    context = build_context(settings)
    context.selection = replace(context.selection, started=(GarbageCollector(),))
    yield context
    context.shutdown()


def define(store: Store) -> None:
    """Creates a definition whose names are accepted, as the API server does."""
    store.create(definition())

    store.modify(DEFINITIONS, NAME, accept_names, subresource=Subresource.STATUS)


def crontab(store: Store, name: str, **metadata: Any) -> KubeObject:
    body = {
        "apiVersion": "example.com/v1",
        "kind": "CronTab",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {"replicas": 1},
    }
    return codec.decode(body, store.scheme)


def build_owner_reference(owner: KubeObject) -> OwnerReference:
    return OwnerReference(
        api_version="example.com/v1", kind="CronTab", name=owner.name, uid=owner.uid
    )


def test_a_process_learns_of_kinds_when_it_asks(store: Store) -> None:
    define(store)
    with pytest.raises(errors.UnknownKind):
        crontab(store, "one")
    Definitions(store).refresh()
    assert store.create(crontab(store, "one")).uid


def test_an_object_of_an_old_class_is_written_as_one_of_its_kind(store: Store) -> None:
    define(store)
    seen = Definitions(store)
    seen.refresh()
    old = store.create(crontab(store, "one"))
    schema = struct(spec=struct(replicas=WHOLE))

    def store_as_v2(present: CustomResourceDefinition) -> CustomResourceDefinition:
        return present.with_spec(definition(v2=schema, v1=schema).spec)

    store.modify(DEFINITIONS, NAME, store_as_v2)
    seen.refresh()
    new = store.scheme.by_name(NAME)
    assert (old.resource is new, old.resource.name) == (False, new.name)
    store.update(old.with_metadata(labels={"a": "b"}))
    stored = store.get(new, old.key)
    assert (type(stored), stored.api_version) == (new.model, "example.com/v2")
    assert (stored.labels, codec.to_dict(stored)["spec"]) == ({"a": "b"}, {"replicas": 1})
    store.delete(old.resource, old.key)
    with pytest.raises(errors.NotFound):
        store.get(new, old.key)


class Counted(Store):
    """A store that counts its lists."""

    lists = 0

    def list(self, *args: Any, **kwargs: Any) -> Any:
        self.lists += 1
        return super().list(*args, **kwargs)


def test_definitions_that_come_and_go_are_not_read_all_again(io: RedisIO) -> None:
    store = Counted(io)
    seen = Definitions(store)
    seen.refresh()
    listed = store.lists
    define(store)
    seen.refresh()
    assert custom_names(store.scheme) == {NAME}
    store.delete(DEFINITIONS, NAME)
    store.modify(DEFINITIONS, NAME, lambda old: old.with_metadata(finalizers=None))
    seen.refresh()
    # What waits to be forgotten shows in nothing else until it is.
    assert seen._gone.keys() == {NAME}
    assert store.lists == listed


def test_the_front_door_takes_custom_objects(store: Store, io: RedisIO) -> None:
    define(store)
    bus = EventBus(store)
    bus.ensure_group()
    text = (
        '{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{"name":"one"},'
        '"spec":{"replicas":%s,"foo":1}}'
    )
    for replicas in ("3", '"x"'):
        io.execute("XADD", io.keys.events(), "*", "type", "ADDED", "object", text % replicas)
    results = [bus.process(*entry) for entry in bus.read("me", 10)]
    assert results == ["applied", "Invalid"]
    stored = store.get(store.scheme.by_name(NAME), "default/one")
    assert codec.to_dict(stored)["spec"] == {"replicas": 3}


def test_nothing_is_created_of_a_kind_that_goes(store: Store) -> None:
    define(store)
    Definitions(store).refresh()
    new_definition = definition().with_metadata(finalizers=["example.com/hold"])
    store.delete(DEFINITIONS, new_definition.key)
    with pytest.raises(errors.KindTerminating):
        store.create(crontab(store, "late"))


class Collecting:
    """A manager with a garbage collector; the test runs the collector's keys in this process."""

    def __init__(self, context: ControllerContext) -> None:
        self.context = context
        self.manager = Manager(context)
        self.manager.start()
        (controller,) = context.controllers
        assert isinstance(controller, GarbageCollector)
        self.controller = controller
        self.runner = context.runner(self.controller)

    def run(self) -> bool:
        for key in self.context.io.execute(
            "ZRANGE", self.context.io.keys.queue(self.controller.short_name, "waiting"), 0, -1
        ):
            self.runner.run(key.decode())
        return True

    def until_gone(self, store: Store, resource: str, key: str) -> None:
        def is_gone() -> bool:
            self.run()
            try:
                store.get_raw(store.scheme.by_name(resource), key)
            except errors.NotFound:
                return True
            return False

        until(is_gone)


@pytest.fixture
def collecting(context: ControllerContext) -> Iterator[Collecting]:
    new_collecting = Collecting(context)
    yield new_collecting
    new_collecting.manager.stop_loops()


def test_dependents_go_with_their_custom_owner(store: Store, collecting: Collecting) -> None:
    define(store)
    Definitions(store).refresh()
    until(lambda: NAME in {kind.resource.name for kind in collecting.manager.kinds})
    until(lambda: all(kind.lease.held for kind in collecting.manager.kinds))
    owner = store.create(crontab(store, "owner"))
    store.create(pod("p").with_metadata(owner_references=[build_owner_reference(owner)]))
    dependent = crontab(store, "dependent").with_metadata(
        owner_references=[build_owner_reference(owner)]
    )
    store.create(dependent)
    collecting.context.caches.follow()
    collecting.context.wait_fresh(collecting.context.caches.resources(collecting.controller))
    view = collecting.context.caches.view(collecting.controller, RealClock().now())
    plan = collecting.controller.sweep(view, {})
    assert plan.batches == []  # an owner that is there is not absent
    store.delete(store.scheme.by_name(NAME), owner.key, DeleteOptions())
    collecting.until_gone(store, "pods", "default/p")
    collecting.until_gone(store, NAME, "default/dependent")


def test_dependents_go_although_the_kind_of_their_owner_is_gone(store: Store) -> None:
    define(store)
    Definitions(store).refresh()
    owner = crontab(store, "owner", uid="u-1")
    dependent = pod(
        "p", metadata={"uid": "u-2", "owner_references": [build_owner_reference(owner)]}
    )
    unregister(store.scheme, NAME)
    from kcm.testing.views import FakeView

    plan = GarbageCollector().reconcile(
        f"{NAME}|default/owner|u-1", FakeView(dependent, scheme=store.scheme)
    )
    assert [write.old.name for write in plan.writes if isinstance(write, Delete)] == ["p"]
    assert [str(g) for w in plan.writes for g in w.guards] == [f"absent {NAME} default/owner u-1"]


def test_dispatch_ends_with_the_kind(store: Store, collecting: Collecting) -> None:
    define(store)
    follower = KindFollower(
        collecting.context,
        collecting.manager.kinds,
        # The manager's own follower runs in a thread; this one takes its passes by hand.
        collecting.manager._join,
        collecting.manager._leave,
        collecting.manager.recover_listed,
    )
    follower.turn(0.0)
    until(lambda: NAME in {kind.resource.name for kind in collecting.manager.kinds})
    unregister(collecting.context.store.scheme, NAME)
    # Or the kind would be learned again before it is missed.
    collecting.context.caches._refresh = None
    follower.turn(0.0)
    until(lambda: NAME not in {kind.resource.name for kind in collecting.manager.kinds})


def test_a_kind_that_goes_before_its_first_list_was_recovered_holds_up_no_other(
    store: Store, collecting: Collecting
) -> None:
    context = collecting.context
    define(store)
    context.caches.follow()
    resource = context.store.scheme.by_name(NAME)
    going, staying = (
        KindDispatcher(each, [], FencedLease(context.io, each.name, "me"), lambda: None, print)
        for each in (resource, pod("p").resource)
    )
    unregister(context.store.scheme, NAME)
    context.caches._refresh = None
    context.caches.follow()
    assert recover(context, [going, staying])
    assert (going.is_recovered, staying.is_recovered) == (False, True)
