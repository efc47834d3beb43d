"""Tests that the store enforces the lifecycle of namespaces for every writer."""

from __future__ import annotations

import threading

import pytest

from kcm import errors
from kcm.api.core_v1 import Namespace
from kcm.api.scheme import BUILT_IN
from kcm.reconcile.executor import PlanExecutor
from kcm.reconcile.plan import Create, Plan
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store
from kcm.store.admission import namespaces
from kcm.store.namespaces import SYSTEM
from tests.new_objects import make_namespaces, node, pod

NAMESPACES = Namespace.resource
PODS = BUILT_IN.lookup("pods")


def terminate(store: Store, name: str) -> None:
    """Deletes a namespace; its finalizer keeps it terminating."""
    store.delete(NAMESPACES, name)
    assert store.get(NAMESPACES, name).deleting


@pytest.mark.parametrize("name", SYSTEM)
def test_the_systems_namespaces_come_into_being_when_needed(store: Store, name: str) -> None:
    assert store.create(pod("a", namespace=name)).namespace == name
    assert not store.get(NAMESPACES, name).deleting


def test_a_batch_that_needs_one_is_written_whole_and_in_order(store: Store) -> None:
    items = [store.build_create(obj) for obj in (node("n"), pod("a"), pod("b"))]
    assert [result.status for result in store.write(items)] == ["ok"] * 3
    assert [obj.name for obj in store.list(PODS).items] == ["a", "b"]


def test_nothing_comes_into_a_namespace_that_is_missing(store: Store) -> None:
    with pytest.raises(errors.NotFound, match='namespaces "none" not found'):
        store.create(pod("a", namespace="none"))


def test_nothing_comes_into_a_namespace_that_terminates(store: Store) -> None:
    make_namespaces(store, "going")
    old = store.create(pod("old", namespace="going"))
    terminate(store, "going")
    with pytest.raises(errors.NamespaceTerminating) as refused:
        store.create(pod("a", namespace="going"))
    assert refused.value.message == (
        'pods "a" is forbidden: unable to create new content in namespace going because it is '
        "being terminated"
    )
    store.update(old.with_metadata(labels={"still": "changed"}))  # what is there may change
    store.delete(PODS, "going/old")


def test_a_create_repeated_after_a_lost_reply_is_still_a_success(store: Store) -> None:
    make_namespaces(store, "going")
    first = store.create(pod("a", namespace="going", uid="u-1"))
    terminate(store, "going")
    assert store.create(pod("a", namespace="going", uid="u-1")).metadata.resource_version == (
        first.metadata.resource_version
    )


def test_a_namespace_of_the_batch_itself_counts(store: Store) -> None:
    new = Namespace(metadata=node("new").metadata.replace(name="new", labels=None))
    items = [store.build_create(new), store.build_create(pod("a", namespace="new"))]
    assert [result.status for result in store.write(items)] == ["ok", "ok"]


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_the_systems_namespaces_stay(store: Store, name: str) -> None:
    namespaces.ensure(store)
    with pytest.raises(errors.Forbidden, match="this namespace may not be deleted"):
        store.delete(NAMESPACES, name)


@pytest.mark.redis_only
def test_no_object_slips_into_a_namespace_that_goes_at_the_same_time(
    store: Store, settings: Settings
) -> None:
    make_namespaces(store, "race")
    io = RedisIO(settings)
    stopped: list[int] = []

    def create() -> None:
        other = Store(io)
        for number in range(10_000):
            try:
                other.create(pod(f"p{number}", namespace="race"))
            except errors.NamespaceTerminating:
                stopped.append(number)
                return

    thread = threading.Thread(target=create)
    thread.start()
    while store.count(PODS) < 5:
        pass
    store.delete(NAMESPACES, "race")
    marked = int(store.get(NAMESPACES, "race").metadata.resource_version or 0)
    thread.join(10)
    io.close()
    assert stopped
    versions = [int(obj.metadata.resource_version or 0) for obj in store.list(PODS).items]
    assert max(versions) < marked


def test_controllers_stop_in_silence(store: Store) -> None:
    make_namespaces(store, "going")
    terminate(store, "going")
    writes = [Create(pod(f"p{number}", namespace="going")) for number in range(7)]
    outcome = PlanExecutor(store).execute(Plan().then(*writes, slow_start=True), None)
    assert (outcome.done, outcome.failures, outcome.error) == ((), (), None)
    assert outcome.skipped == 7
