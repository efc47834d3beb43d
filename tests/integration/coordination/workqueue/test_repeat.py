"""Tests that every script may be executed twice for one call (design 0002)."""

from __future__ import annotations

import pytest

from kcm.coordination.workqueue import QueueConfig, WorkQueue
from kcm.redisio import RedisIO, scripts
from tests.integration.coordination.workqueue.conftest import state
from tests.server_clock import step

Q = "replicaset"


def arrange(io: RedisIO) -> str:
    """Creates a queue with keys in every state, and returns the token of the running one."""
    queue = WorkQueue(io, Q)
    queue.configure(QueueConfig(task="kcm.replicaset.sync", broker_queue="controllers"))
    queue.add("running", "waiting", "waiting too")
    (lease,) = queue.take("running")
    queue.add("running")
    queue.add_after("delayed", 1)
    queue.add_rate_limited("failing")
    io.execute("HSET", io.keys.lease("l"), "holder", "me", "token", "5", "expires", "9" * 13)
    return lease.token


CALLS: dict[str, list[str | int]] = {
    "queue_configure": [Q, 2, "cap", 5],
    "queue_add": [Q, 0, 2, "new", "running", Q, "limited", 1, "failing", Q, 50, 1, "later"],
    "queue_dispatch": ["", "", "", "kcm:dispatch:position", 1, "pods", 4, 1, Q, Q, 0, 1, "new"],
    "queue_take": [Q, "", 8, 1],
    "queue_finish": [Q, 0, "running", "TOKEN", "retry", 0],
    "queue_renew": [Q, "running", "TOKEN"],
    "queue_pump": [1000],
    "queue_reap": [1000],
    "queue_forget": ["", "", "", Q, "failing"],
    "queue_drain": [Q, 1],
    "queue_stats": [],
    "lease_acquire": ["me", "l", 4000, "", "", "free", 4000, "", ""],
    "lease_renew": ["l", 4000, "5"],
    "lease_release": ["l", "5"],
}


def test_every_script_of_queues_and_leases_is_tried() -> None:
    own = [name for name in scripts.names() if name.startswith(("queue_", "lease_"))]
    assert sorted(CALLS) == sorted(own)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_repeated_call_gives_the_same_answer_and_does_nothing(io: RedisIO, name: str) -> None:
    token = arrange(io)
    step(io, 5)
    args = [token if arg == "TOKEN" else arg for arg in CALLS[name]]
    first = io.call(name, *args, call_id="one")
    after = state(io)
    assert io.call(name, *args, call_id="one") == first
    assert state(io) == after


@pytest.mark.parametrize("outcome", ["done", "retry", "requeue", "abandon"])
def test_a_repeated_finish_does_not_look_lost(io: RedisIO, outcome: str) -> None:
    token = arrange(io)
    args: list[str | int] = [Q, 0, "running", token, outcome, 20]
    first = io.call("queue_finish", *args, call_id="one")
    assert first[1] == "OK"
    after = state(io)
    assert io.call("queue_finish", *args, call_id="one") == first
    assert state(io) == after


@pytest.mark.parametrize("name", ["queue_configure", "queue_forget", "queue_drain", "queue_pump"])
def test_scripts_called_without_a_call_id_may_run_twice(io: RedisIO, name: str) -> None:
    arrange(io)
    step(io, 5)  # so that nothing falls due between the two calls
    io.call(name, *CALLS[name], call_id="")
    after = state(io)
    io.call(name, *CALLS[name], call_id="")
    assert state(io) == after
