"""Two managers with --leader-elect over a real store."""

from __future__ import annotations

from kcm import errors
from kcm.api.coordination_v1 import Lease
from kcm.api.core_v1 import Event
from kcm.redisio import RedisIO
from kcm.store import Store
from kcm.testing.waiting import until
from tests.integration.startup.conftest import Begin, Instance
from tests.typed_objects import get_object

SHORT = {
    "leader_elect": "true",
    "leader_elect_lease_duration": "2s",
    "leader_elect_renew_deadline": "1s",
    "leader_elect_retry_period": "200ms",
}
KEY = "kube-system/kcm-controller-manager"


def lease(io: RedisIO) -> Lease:
    return get_object(Store(io), Lease, KEY)


def steal(io: RedisIO) -> bool:
    """Takes the lease over; returns False where its holder, who renews it meanwhile, was faster."""
    held = lease(io)
    try:
        Store(io).update(held.with_spec(held.spec.replace(holder_identity="thief")))
    except errors.Conflict:
        return False
    return True


def messages(io: RedisIO) -> list[str]:
    events = Store(io).list(Event.resource).items
    return [event.model_dump()["message"] for event in events]


def is_leading(instance: Instance) -> bool:
    return bool(instance.run.elector and instance.run.elector.is_leader)


def test_one_works_the_other_waits_and_takes_over_after_a_clean_stop(
    begin: Begin, io: RedisIO
) -> None:
    first = begin(**SHORT)
    until(first.ready)
    second = begin(**SHORT)
    until(lambda: "leader failed" in second.get("/readyz").text)
    assert second.get("/healthz").status_code == 200
    assert second.run.manager.started == []
    status = 'leader_election_master_status{name="kcm-controller-manager"} '
    assert status + "1.0" in first.get("/metrics").text
    assert status + "0.0" in second.get("/metrics").text

    first.end()
    assert first.code == 0
    until(second.ready)
    assert lease(io).spec.lease_transitions == 1
    second.end()
    keys = [message.split(" ", 1)[1] for message in messages(io)]
    assert sorted(keys) == ["became leader"] * 2 + ["stopped leading"] * 2


def test_who_loses_the_lease_stops_at_once_with_exit_code_1(begin: Begin, io: RedisIO) -> None:
    loser = begin(**SHORT)
    until(loser.ready)
    until(lambda: steal(io), "the theft of the lease")
    assert loser.wait_end(4)
    assert loser.code == 1
    assert loser.run.context.stop.is_set()
    held = io.execute("HGET", io.keys.lease("ingest"), "holder")
    assert held in (None, b"")


def test_a_strategy_that_others_wrote_stays(begin: Begin, io: RedisIO) -> None:
    resource = Lease.resource
    instance = begin(**SHORT)
    until(lambda: is_leading(instance))
    patch = {"spec": {"preferredHolder": "x", "strategy": "OldestEmulationVersion"}}
    Store(io).patch(resource, KEY, patch)
    before = lease(io).spec.renew_time
    until(lambda: lease(io).spec.renew_time != before)
    assert lease(io).spec.strategy == "OldestEmulationVersion"
