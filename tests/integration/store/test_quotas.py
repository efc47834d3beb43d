"""Tests that quotas hold for every writer and for many concurrent ones."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.core_v1 import (
    ConfigMap,
    Pod,
    ResourceQuota,
    ResourceQuotaSpec,
    ResourceQuotaStatus,
    Service,
    ServicePort,
    ServiceSpec,
)
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apimachinery.quantity import Quantity
from kcm.reconcile.executor import PlanExecutor
from kcm.reconcile.plan import Create, Plan
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store
from kcm.store.admission import namespaces
from kcm.store.eventbus import EventBus
from kcm.store.options import Subresource
from kcm.store.writes.guards import Exists, NothingCharged
from kcm.testing.clock import FakeClock
from tests.new_objects import pod

PODS = Pod.resource
QUOTAS = ResourceQuota.resource
CONFIG_MAPS = ConfigMap.resource


@pytest.fixture
def store(io: RedisIO, clock: FakeClock) -> Store:
    store = Store(io, clock)
    namespaces.ensure(store, "default")
    return store


def limit(store: Store, name: str = "few", **hard: Any) -> ResourceQuota:
    """Creates a quota whose status shows that its controller has counted no usage yet."""
    amounts = {key: Quantity(value) for key, value in hard.items()}
    spec = ResourceQuotaSpec(hard=amounts)
    quota = store.create(ResourceQuota(metadata=ObjectMeta(name=name), spec=spec))
    used = dict.fromkeys(amounts, Quantity(0))
    return store.update_status(quota.with_status(ResourceQuotaStatus(hard=amounts, used=used)))


def get_used(store: Store, name: str = "few") -> dict[str, str]:
    quota = store.get(QUOTAS, f"default/{name}")
    assert isinstance(quota, ResourceQuota)
    return {key: str(amount) for key, amount in (quota.status.used or {}).items()}


def pods(store: Store) -> int:
    return len(store.list(PODS, "default").items)


def create_batch(store: Store, count: int, prefix: str = "p") -> list[str]:
    items = [store.build_create(pod(f"{prefix}{n}")) for n in range(count)]
    return [result.status for result in store.write(items)]


def test_a_batch_is_written_as_far_as_there_is_room(store: Store) -> None:
    limit(store, pods=10)
    statuses = create_batch(store, 300)
    assert statuses == ["ok"] * 10 + ["quota"] * 290
    assert pods(store) == 10
    assert get_used(store) == {"pods": "10"}


def test_copies_of_one_pod_are_counted_one_by_one(store: Store) -> None:
    limit(store, pods=10)
    model = pod("").with_metadata(name=None, generate_name="web-")
    outcome = PlanExecutor(store).execute(
        Plan().then(*[Create(model) for _ in range(500)], slow_start=True), None
    )
    assert pods(store) == len(outcome.done) == 10
    # 1, 2, 4, and three of the next eight.
    assert (len(outcome.failures), outcome.skipped) == (5, 485)
    assert "exceeded quota: few, requested: pods=1, used: pods=10, limited: pods=10" in str(
        outcome.failures[0].error
    )


def test_what_is_refused_is_told_in_upstreams_words(store: Store) -> None:
    limit(store, pods=1)
    store.create(pod("a"))
    with pytest.raises(errors.Forbidden) as refused:
        store.create(pod("b"))
    assert str(refused.value) == (
        'pods "b" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, '
        "limited: pods=1"
    )


def test_nothing_is_created_until_a_quota_has_counted(store: Store) -> None:
    spec = ResourceQuotaSpec(hard={"pods": Quantity(5)})
    store.create(ResourceQuota(metadata=ObjectMeta(name="new"), spec=spec))
    store.create(pod("not-limited-yet"))
    quota = store.get(QUOTAS, "default/new")
    assert isinstance(quota, ResourceQuota)
    store.update_status(quota.with_status(ResourceQuotaStatus(hard=spec.hard)))
    with pytest.raises(errors.Forbidden, match="status unknown for quota: new, resources: pods"):
        store.create(pod("a"))


def test_a_quota_that_another_process_made_or_removed_counts_at_once(
    store: Store, io: RedisIO, clock: FakeClock
) -> None:
    other = Store(io, clock)
    store.create(pod("before"))
    limit(other, pods=0)
    with pytest.raises(errors.Forbidden):
        store.create(pod("during"))
    other.delete(QUOTAS, "default/few")
    store.create(pod("after"))


def test_what_fails_for_another_reason_costs_nothing(store: Store) -> None:
    limit(store, pods=3)
    store.create(pod("p1"))
    assert create_batch(store, 4) == ["ok", "exists", "ok", "quota"]
    assert get_used(store) == {"pods": "3"}
    absent = Exists(PODS.name, "default/nobody")
    limit(store, "more", pods=99)
    guarded = store.write([store.build_create(pod("q"), (absent,))])
    assert guarded[0].status == "quota"
    assert get_used(store, "more") == {"pods": "0"}


def test_a_name_that_comes_twice_in_a_batch_is_charged_once(store: Store) -> None:
    limit(store, pods=3)
    items = [store.build_create(pod("same")) for _ in range(2)]
    assert [result.status for result in store.write(items)] == ["ok", "exists"]
    assert get_used(store) == {"pods": "1"}


def test_several_quotas_are_all_charged_or_none(store: Store) -> None:
    limit(store, "wide", pods=5, **{"count/configmaps": 5})
    limit(store, "narrow", pods=2)
    assert create_batch(store, 3) == ["ok", "ok", "quota"]
    assert get_used(store, "wide") == {"pods": "2", "count/configmaps": "0"}
    assert get_used(store, "narrow") == {"pods": "2"}


def test_namespaces_of_one_batch_have_their_own_quotas(store: Store) -> None:
    namespaces.ensure(store, "kube-system")
    limit(store, pods=1)
    items = [
        store.build_create(pod(f"p{n}").with_metadata(namespace=namespace))
        for n in range(2)
        for namespace in ("default", "kube-system")
    ]
    assert [result.status for result in store.write(items)] == ["ok", "ok", "quota", "ok"]
    assert get_used(store) == {"pods": "1"}


@pytest.mark.parametrize("kind", ["configmaps", "count/configmaps"])
def test_the_number_of_objects_is_limited_by_the_old_and_the_new_name(
    store: Store, kind: str
) -> None:
    hard: dict[str, Any] = {kind: 1}
    limit(store, **hard)
    store.create(ConfigMap(metadata=ObjectMeta(name="a")))
    with pytest.raises(errors.Forbidden, match=rf"exceeded quota: few, requested: {kind}=1"):
        store.create(ConfigMap(metadata=ObjectMeta(name="b")))


def test_an_update_that_takes_more_is_charged_the_difference(store: Store) -> None:
    hard: dict[str, Any] = {"services.nodeports": 2, "services": 9}
    limit(store, **hard)
    ports = [ServicePort(name=f"p{n}", port=80 + n) for n in range(3)]
    spec = ServiceSpec(ports=ports[:1], selector={"a": "b"})
    service = store.create(Service(metadata=ObjectMeta(name="web"), spec=spec))
    updated_service = store.update(service.with_spec(service.spec.replace(type="NodePort")))
    assert get_used(store) == {"services.nodeports": "1", "services": "1"}
    with pytest.raises(errors.Forbidden, match=r"requested: services\.nodeports=2, used: serv"):
        store.update(updated_service.with_spec(updated_service.spec.replace(ports=ports)))


@pytest.mark.redis_only
def test_an_injected_event_is_refused_with_the_reason(store: Store, io: RedisIO) -> None:
    limit(store, pods=1)
    bus = EventBus(Store(io))
    bus.ensure_group()
    for name in ("a", "b"):
        body = codec.encode(pod(name))
        io.execute("XADD", io.keys.events(), "*", "type", "ADDED", "object", body)
    assert [bus.process(*entry) for entry in bus.read("me", 10)] == ["applied", "Forbidden"]
    assert pods(store) == 1
    (letter,) = bus.list_dead_letters()
    assert "exceeded quota: few" in letter.message


def test_a_count_that_missed_a_charge_is_not_written(store: Store, io: RedisIO) -> None:
    limit(store, pods=9)
    created_pod = store.create(pod("a"))
    version = int(created_pod.metadata.resource_version or 0)
    quota = store.get(QUOTAS, "default/few")

    def write_status(seen: int) -> str:
        status = ResourceQuotaStatus(hard={"pods": Quantity(9)}, used={"pods": Quantity(0)})
        item = store.build_update(
            quota.with_status(status),
            store.get(QUOTAS, "default/few"),
            subresource=Subresource.STATUS,
            guards=(NothingCharged("default", ((PODS.name, seen), (CONFIG_MAPS.name, 0))),),
        )
        assert item is not None
        return store.write([item])[0].status

    assert [write_status(version - 1), write_status(version)] == ["guard", "ok"]


def _create_some(url: str, client: int) -> int:
    """Runs one client process: it tries to create ten pods, and returns how many were created."""
    io = RedisIO(Settings(redis_url=url))
    io.attach()
    store = Store(io)

    def attempt(number: int) -> bool:
        try:
            store.create(pod(f"c{client}-{number}"))
        except errors.Forbidden:
            return False
        return True

    with ThreadPoolExecutor(10) as threads:
        count = sum(threads.map(attempt, range(10)))
    io.close()
    return count


@pytest.mark.redis_only
def test_fifty_clients_at_a_time_create_exactly_what_there_is_room_for(
    store: Store, settings: Settings
) -> None:
    limit(store, pods=20)
    context = multiprocessing.get_context("spawn")
    with context.Pool(5) as processes:
        numbers = processes.starmap(_create_some, [(settings.redis_url, n) for n in range(5)])
    assert sum(numbers) == pods(store) == 20
    assert get_used(store) == {"pods": "20"}
