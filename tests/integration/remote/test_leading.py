"""Who leads on another API server writes, and nobody else does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from kcm import errors
from kcm.api.coordination_v1 import Lease
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.clock import RealClock
from kcm.coordination.election import LeaderElectionRecord
from kcm.coordination.workqueue import Addition, add_keys
from kcm.manager.context.context import build_context
from kcm.manager.context.leading import Leadership
from kcm.manager.leaselock import AnnouncedLock, StoreLeaseLock
from kcm.options.manager import ManagerOptions
from kcm.reconcile.plan import Event
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store.remote.kubeconfig import load
from kcm.store.remote.rest import RestClient
from kcm.store.remote.store import RemoteStore
from kcm.store.remote.work import WorkState
from kcm.testing.clock import FakeClock
from kcm.testing.waiting import until
from tests.integration.apiserver.serving import Live
from tests.new_objects import pod, replica_set, strip_store_fields
from workers.process import WorkerProcess

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEASE = "kube-system/kube-controller-manager"


class Nowhere:
    """Records no Events."""

    def record(self, event: Event, component: str) -> None:
        """Drops the Event."""


@pytest.fixture
def leadership(io: RedisIO) -> Leadership:
    return Leadership(io, RealClock(), deadline=10.0)


@pytest.fixture
def lock(api: Live, remote: RemoteStore, leadership: Leadership) -> Iterator[AnnouncedLock]:
    place = ObjectMeta(namespace="kube-system", name="kube-controller-manager")
    inner = StoreLeaseLock(remote, place, "kcm", Nowhere())
    yield AnnouncedLock(inner, leadership, RealClock())
    if api.store.find(Lease.resource, LEASE) is not None:
        api.store.delete(Lease.resource, LEASE)


def record(holder: str) -> LeaderElectionRecord:
    return LeaderElectionRecord(holder, 15, NOW, NOW)


def test_the_lease_is_in_the_cluster_and_all_processes_learn_who_holds_it(
    api: Live, lock: AnnouncedLock, leadership: Leadership
) -> None:
    assert not leadership.leads()
    assert lock.get() is None
    version = lock.create(record("kcm"))
    stored = api.store.get(Lease.resource, LEASE)
    assert isinstance(stored, Lease)
    assert stored.spec.holder_identity == "kcm"
    assert leadership.leads()
    lock.update(record(""), version)  # released
    assert not leadership.leads()


def test_the_lease_of_another_is_no_claim(
    api: Live, lock: AnnouncedLock, leadership: Leadership
) -> None:
    lock.create(record("another"))
    shown = lock.get()
    assert shown is not None
    assert shown[0].holder_identity == "another"
    assert not leadership.leads()


def test_the_lease_is_kept_while_the_workers_cannot_be_told(
    api: Live, lock: AnnouncedLock, remote: RemoteStore
) -> None:
    """Redis may be back before the claim has expired."""
    version = lock.create(record("kcm"))
    away = RedisIO(Settings(redis_url="redis://127.0.0.1:1"))
    place = ObjectMeta(namespace="kube-system", name="kube-controller-manager")
    inner = StoreLeaseLock(remote, place, "kcm", Nowhere())
    telling = AnnouncedLock(inner, Leadership(away, RealClock(), deadline=10.0), RealClock())
    with pytest.raises(errors.StoreUnavailable):
        telling.update(record(""), version)
    stored = api.store.get(Lease.resource, LEASE)
    assert isinstance(stored, Lease)
    assert stored.spec.holder_identity == "kcm"
    away.close()


def test_a_claim_lasts_for_the_deadline_from_before_the_renewal(io: RedisIO) -> None:
    clock = FakeClock()
    leadership = Leadership(io, clock, deadline=10.0)
    began = clock.monotonic()
    clock.step(4.0)
    leadership.claim(began)
    assert 5_000 < io.execute("PTTL", io.keys.leading()) <= 6_000
    leadership.resign()
    clock.step(7.0)
    leadership.claim(began)  # the answer came too late
    assert not leadership.leads()


def test_who_does_not_lead_writes_nothing(api: Live, leadership: Leadership) -> None:
    client = RestClient(load(api.kubeconfig), "tester")
    store = RemoteStore(client, WorkState(leads=leadership.leads))
    item = store.build_create(strip_store_fields(pod("led")))
    with pytest.raises(errors.StoreUnavailable, match="another controller manager leads"):
        store.write([item])
    with pytest.raises(errors.StoreUnavailable, match="another controller manager leads"):
        store.delete_collection(item.resource, "default")
    leadership.claim(RealClock().monotonic())
    assert store.write([item])[0].ok
    store.close()


def test_a_worker_takes_no_keys_until_its_kcm_leads(
    api: Live, io: RedisIO, settings: Settings, leadership: Leadership
) -> None:
    flags = {"kubeconfig": str(api.kubeconfig), "controllers": "replicaset"}
    options = ManagerOptions.load(flags, {})
    add_keys(io, [Addition("replicaset", ("default/gone",))])
    worker = WorkerProcess(lambda: build_context(settings, options))
    assert worker.sync("replicaset", "default/gone") == 0
    leadership.claim(RealClock().monotonic())
    assert worker.sync("replicaset", "default/gone") == 1
    worker.stop()


def test_a_worker_that_is_the_manager_too_leads_again_after_another_has_led(
    api: Live, settings: Settings
) -> None:
    """What it has in memory is built anew, and the Lease is given back at the end."""
    flags = {
        "kubeconfig": str(api.kubeconfig),
        "controllers": "replicaset",
        "secure-port": "0",
        "leader-elect-resource-name": "one",
        "leader-elect-lease-duration": "1500ms",
        "leader-elect-renew-deadline": "1s",
        "leader-elect-retry-period": "200ms",
    }
    options = ManagerOptions.load(flags, {})
    queues = ("workloads",)
    worker = WorkerProcess(
        lambda: build_context(settings, options, kind="manager", queues=queues), manages=True
    )
    try:
        first = _wait_for_holder(api, ("", "another"))
        _expect_sync(api, worker, "before")
        lease = api.store.get(Lease.resource, "kube-system/one")
        stolen = lease.spec.replace(holder_identity="another", renew_time=datetime.now(UTC))
        newest = lease.with_metadata(resource_version=None)  # the worker renews it meanwhile
        api.store.update(newest.with_spec(stolen))
        assert _wait_for_holder(api, ("", "another", first))
        _expect_sync(api, worker, "after")
    finally:
        worker.stop()
    assert not _read_holder(api)


def _read_holder(api: Live) -> str:
    lease = api.store.find(Lease.resource, "kube-system/one")
    return (lease.spec.holder_identity or "") if lease is not None else ""


def _wait_for_holder(api: Live, not_one_of: tuple[str, ...]) -> str:
    until(lambda: _read_holder(api) not in not_one_of, "the worker's manager leads", within=30)
    return _read_holder(api)


def _expect_sync(api: Live, worker: WorkerProcess, name: str) -> None:
    """Creates a ReplicaSet, and waits until the worker has taken the key that it dispatched."""
    api.store.create(strip_store_fields(replica_set(name)))
    key, taken = f"default/{name}", "the key was not dispatched"
    until(lambda: worker.sync("replicaset", key), taken, within=30)
