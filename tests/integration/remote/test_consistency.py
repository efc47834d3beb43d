"""Expectations in place of fresh caches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.clock import RealClock
from kcm.informers.factory import SharedInformerFactory
from kcm.loops import ThreadHost
from kcm.reconcile.consistency import KEPT, CacheChanges, ExpectedChanges, FreshCaches
from kcm.reconcile.expectations import ControllerExpectations
from kcm.redisio import Fence, RedisIO
from kcm.store import DeleteOptions, Store
from tests.new_objects import pod, strip_store_fields
from tests.server_clock import step

KEY = "default/web"
PODS = Pod.resource
NOBODY = threading.Event()
FENCE = Fence("held", KEY, "1")


@pytest.fixture
def store(io: RedisIO) -> Store:
    io.execute("HSET", FENCE.key, FENCE.field, FENCE.token)
    return Store(io)


@pytest.fixture
def factory(store: Store) -> Iterator[SharedInformerFactory]:
    """Informers that are not started: a cache that lags as long as the test wants."""
    new_factory, host = SharedInformerFactory(store), ThreadHost()
    host.run(new_factory.loop)
    yield new_factory
    host.stop()
    new_factory.shutdown()


@pytest.fixture
def expected(io: RedisIO, store: Store, factory: SharedInformerFactory) -> ExpectedChanges:
    informer = factory.informer_for(Pod)
    expectations = ControllerExpectations(io, "replicaset", KEPT)
    fresh = FreshCaches(factory.freshness_barrier(), lambda: [PODS])
    return ExpectedChanges(
        expectations, [informer], store, RealClock(), fresh, changes=CacheChanges()
    )


class WokenClock(RealClock):
    """A clock whose waits must end because somebody is woken."""

    def wait(self, event: threading.Event, timeout: float) -> bool:
        assert event.wait(10), "nobody woke the sync that waits"
        return True


def wait_for_caches(factory: SharedInformerFactory) -> None:
    factory.start()
    factory.wait_for_cache_sync(NOBODY)


def test_without_expectations_nobody_waits(expected: ExpectedChanges) -> None:
    expected.wait(KEY, 0, NOBODY)


def test_a_sync_waits_for_the_position_of_its_kinds(
    expected: ExpectedChanges, store: Store, factory: SharedInformerFactory
) -> None:
    created = store.create(strip_store_fields(pod("a")))
    with pytest.raises(errors.CacheNotSynced, match="caches pods"):
        expected.wait_until_fresh(0, NOBODY)
    factory.start()
    expected.wait_until_fresh(10, NOBODY)
    assert factory.informer_for(Pod).get_store().get_by_key(created.key) is not None


def test_a_sync_waits_until_its_cache_shows_what_was_created(
    expected: ExpectedChanges, store: Store, factory: SharedInformerFactory
) -> None:
    item = store.build_create(strip_store_fields(pod("a")))
    expectations = expected.expectations(KEY, FENCE)
    expectations.expect_writes([item])
    expectations.observe_results(store.write([item]))
    with pytest.raises(errors.CacheNotSynced, match="pods default/a"):
        expected.wait(KEY, 0, NOBODY)
    wait_for_caches(factory)
    expected.wait(KEY, 10, NOBODY)


def test_issue_129795_a_cache_that_lags_for_long_creates_nothing_twice(
    expected: ExpectedChanges, store: Store, io: RedisIO, factory: SharedInformerFactory
) -> None:
    """Upstream gives expectations up after five minutes, and trusts the cache again."""
    item = store.build_create(strip_store_fields(pod("a")))
    expectations = expected.expectations(KEY, FENCE)
    expectations.expect_writes([item])
    expectations.observe_results(store.write([item]))
    for _ in range(3):
        step(io, 600)
        with pytest.raises(errors.CacheNotSynced, match="pods default/a"):
            expected.wait(KEY, 0, NOBODY)
    wait_for_caches(factory)
    expected.wait(KEY, 10, NOBODY)


def test_a_sync_waits_until_its_cache_shows_what_was_deleted(
    expected: ExpectedChanges, store: Store, factory: SharedInformerFactory
) -> None:
    old = store.create(strip_store_fields(pod("a")))
    wait_for_caches(factory)
    item = store.build_delete(old, DeleteOptions())
    assert item is not None
    expectations = expected.expectations(KEY, FENCE)
    expectations.expect_writes([item])
    with pytest.raises(errors.CacheNotSynced):
        _wait_while_it_stands(expected, store)
    expectations.observe_results(store.write([item]))
    expected.wait(KEY, 10, NOBODY)


def _wait_while_it_stands(expected: ExpectedChanges, store: Store) -> None:
    """Waits as if the delete were written and the cache late: the store no longer has it."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(store, "get_all", lambda wanted: [None])
        expected.wait(KEY, 0, NOBODY)


def test_what_was_announced_and_never_written_is_given_up_after_the_timeout(
    expected: ExpectedChanges, store: Store
) -> None:
    expectations = expected.expectations(KEY, FENCE)
    expectations.expect_writes([store.build_create(strip_store_fields(pod("never")))])
    expected.wait(KEY, 0, NOBODY)  # the process died before the write; looked up, and forgotten


def test_what_was_refused_is_expected_no_more(expected: ExpectedChanges, store: Store) -> None:
    store.create(strip_store_fields(pod("a")))
    item = store.build_create(strip_store_fields(pod("a")))
    expectations = expected.expectations(KEY, FENCE)
    expectations.expect_writes([item])
    expectations.observe_results(store.write([item]))
    expected.wait(KEY, 0, NOBODY)


def test_one_that_came_and_went_was_seen(
    expected: ExpectedChanges, store: Store, factory: SharedInformerFactory
) -> None:
    wait_for_caches(factory)
    item = store.build_create(strip_store_fields(pod("brief")))
    expectations = expected.expectations(KEY, FENCE)
    expectations.expect_writes([item])
    expectations.observe_results(store.write([item]))
    store.delete(PODS, "default/brief")
    expected.wait(KEY, 10, NOBODY)


def test_controllers_share_one_handler_of_each_cache(
    io: RedisIO, store: Store, factory: SharedInformerFactory
) -> None:
    informer, changes = factory.informer_for(Pod), CacheChanges()
    fresh = FreshCaches(factory.freshness_barrier(), lambda: [PODS])
    before = threading.active_count()
    controllers = []
    for name in ("replicaset", "job", "daemonset"):
        expectations = ControllerExpectations(io, name, KEPT)
        controllers.append(
            ExpectedChanges(expectations, [informer], store, WokenClock(), fresh, changes=changes)
        )
    assert threading.active_count() == before
    item = store.build_create(strip_store_fields(pod("a")))
    for controller in controllers:
        controller.expectations(KEY, FENCE).expect_writes([item])
    store.write([item])
    with ThreadPoolExecutor(len(controllers)) as threads:
        waits = [threads.submit(each.wait, KEY, 10, NOBODY) for each in controllers]
        wait_for_caches(factory)
        for wait in waits:
            wait.result()


def test_the_caches_are_hurried_only_for_what_they_lack(
    io: RedisIO, store: Store, factory: SharedInformerFactory
) -> None:
    hurried: list[str] = []

    @contextmanager
    def hurrying() -> Iterator[None]:
        with factory.hurrying():
            hurried.append("began")
            wait_for_caches(factory)
            yield
        hurried.append("ended")

    fresh = FreshCaches(factory.freshness_barrier(), lambda: [PODS])
    expected = ExpectedChanges(
        ControllerExpectations(io, "replicaset", KEPT),
        [factory.informer_for(Pod)],
        store,
        WokenClock(),
        fresh,
        changes=CacheChanges(),
        hurrying=hurrying,
    )
    item = store.build_create(strip_store_fields(pod("a")))
    expected.expectations(KEY, FENCE).expect_writes([item])
    store.write([item])
    expected.wait(KEY, 10, NOBODY)
    expected.wait(KEY, 10, NOBODY)
    assert hurried == ["began", "ended"]


def test_nothing_is_announced_without_the_fence(expected: ExpectedChanges, store: Store) -> None:
    expectations = expected.expectations(KEY, Fence(FENCE.key, FENCE.field, "2"))
    with pytest.raises(errors.Fenced):
        expectations.expect_writes([store.build_create(strip_store_fields(pod("a")))])
