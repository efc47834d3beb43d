"""Passes on a real server: concurrent ones, interrupted ones, and those that others continue."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import Event, Taint
from kcm.api.scheme import BUILT_IN
from kcm.reconcile.plan import Plan
from kcm.redisio import RedisIO
from kcm.store import Store, WriteItem
from kcm.store.writes.writer import Writer
from tests.integration.nodes.conftest import (
    EVICT,
    MONITOR,
    NODES,
    PODS,
    TAINT,
    Cluster,
    Hire,
    Worker,
)
from tests.new_objects import make_namespaces, node, pod
from tests.typed_objects import list_objects

BUCKET = "nodelifecycle::\0:a"


def work_off(
    cluster: Cluster, worker: Worker, seconds: int, *alive: str
) -> list[tuple[float, float, int]]:
    """Runs passes as beat would start them, one per second.

    Returns for each pass when it began and ended on the server's clock, and how many nodes were
    tainted after it.
    """
    counts = []
    for second in range(seconds):
        cluster.step(1)
        if second % 5 == 4:
            cluster.renew(*alive)
            worker.run(MONITOR, cluster.due)
        begun = cluster.moment()
        worker.run(TAINT, cluster.due)
        counts.append((begun, cluster.moment(), len(cluster.list_tainted())))
    return counts


def test_silent_nodes_are_marked_and_tainted_one_by_one(cluster: Cluster, hire: Hire) -> None:
    for number in range(6):
        cluster.node(f"n{number}", pods=1)
    worker = hire()
    assert worker.run(MONITOR, cluster.due)
    alive = ("n3", "n4", "n5")
    cluster.fall_silent(worker, *alive)
    assert [cluster.readiness(f"n{i}") for i in range(6)] == ["Unknown"] * 3 + ["True"] * 3
    assert cluster.list_tainted() == ["n0"]  # the pass over the queue follows at once
    passes = work_off(cluster, worker, 22, *alive)
    assert passes[-1][2] == 3
    second, third = (next(p for p in passes if p[2] == number) for number in (2, 3))
    assert third[1] - second[0] >= 10  # one node in ten seconds
    assert cluster.taint_writes() == ["n0", "n1", "n2"]
    ready = [condition.status for condition in cluster.pod_conditions()]
    assert ready == ["False"] * 3 + ["True"] * 3


def run_until_fenced(worker: Worker, loop: str, due: float) -> None:
    """Runs a pass. A worker that is so slow that the other took its lease over has lost it."""
    with suppress(errors.Fenced):
        worker.run(loop, due)


def test_two_workers_that_race_taint_no_faster_than_one(cluster: Cluster, hire: Hire) -> None:
    for number in range(8):
        cluster.node(f"n{number}")
    workers = [hire(node_eviction_rate=0.5), hire(node_eviction_rate=0.5)]
    assert workers[0].run(MONITOR, cluster.due)
    alive = tuple(f"n{number}" for number in range(4, 8))
    cluster.fall_silent(workers[0], *alive)
    for _ in range(8):
        cluster.step(1)
        threads = [
            threading.Thread(target=run_until_fenced, args=(worker, loop, cluster.due))
            for worker in workers
            for loop in (TAINT, MONITOR)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    # One at once, and one every two seconds.
    assert cluster.taint_writes() == ["n0", "n1", "n2", "n3"]
    assert len(cluster.list_tainted()) == 4


class KilledError(Exception):
    """Stands for the death of the worker."""


@pytest.mark.parametrize("after", range(3))
def test_a_worker_killed_in_a_pass_leaves_nothing_undone_and_doubles_nothing(
    cluster: Cluster, hire: Hire, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """It dies before its writes, between them, or before it can save its state."""
    for number in range(6):
        cluster.node(f"n{number}", pods=2)
    first, second = hire(), hire()
    assert first.run(MONITOR, cluster.due)
    alive = ("n3", "n4", "n5")
    cluster.fall_silent(first, *alive, seconds=40)
    cluster.step(5)
    cluster.renew(*alive)
    with monkeypatch.context() as patched:
        _kill_after(patched, after)
        with pytest.raises(KilledError):
            first.run(MONITOR, cluster.due)
    cluster.step(5)
    cluster.renew(*alive)
    assert second.run(MONITOR, cluster.due)
    assert cluster.list_tainted() == ["n0"]
    ready = [condition.status for condition in cluster.pod_conditions()]
    assert ready == ["False"] * 6 + ["True"] * 6
    work_off(cluster, second, 22, *alive)
    assert cluster.taint_writes() == ["n0", "n1", "n2"]


def _kill_after(patched: pytest.MonkeyPatch, writes: int) -> None:
    real, done = Writer.write, [0]

    def write(writer: Writer, items: Sequence[WriteItem], *args: Any, **options: Any) -> Any:
        if done[0] >= writes:
            raise KilledError
        done[0] += 1
        return real(writer, items, *args, **options)

    patched.setattr(Writer, "write", write)
    if writes >= 2:
        patched.setattr("kcm.manager.ticks.runner.PassResult", _die)


def _die(*args: object, **options: object) -> None:
    raise KilledError


def test_a_taint_pass_killed_before_its_end_costs_its_token_once(
    cluster: Cluster, hire: Hire, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        cluster.node(f"n{number}")
    first, second = hire(), hire()
    assert first.run(MONITOR, cluster.due)
    cluster.fall_silent(first, "n3", "n4", "n5")
    assert cluster.list_tainted() == ["n0"]
    cluster.step(10)
    cluster.renew("n3", "n4", "n5")
    with monkeypatch.context() as patched:
        patched.setattr("kcm.manager.ticks.runner.PassResult", _die)
        with pytest.raises(KilledError):
            first.run(TAINT, cluster.due)
    assert cluster.list_tainted() == ["n0", "n1"]
    cluster.step(1)
    assert second.run(TAINT, cluster.due)
    assert cluster.list_tainted() == ["n0", "n1"]
    cluster.step(9)
    assert second.run(TAINT, cluster.due)
    assert cluster.taint_writes() == ["n0", "n1", "n2"]


def test_a_limiter_outlives_every_worker(cluster: Cluster, hire: Hire, io: RedisIO) -> None:
    for number in range(6):
        cluster.node(f"n{number}")
    worker = hire()
    assert worker.run(MONITOR, cluster.due)
    cluster.fall_silent(worker, "n3", "n4", "n5")
    before = io.call("limiter_read", BUCKET)
    worker.context.shutdown()
    cluster.workers.clear()
    another = hire()
    cluster.step(5)
    assert another.run(MONITOR, cluster.due)  # the pass of TAINT follows in the same task
    assert cluster.list_tainted() == ["n0"]
    after = io.call("limiter_read", BUCKET)
    assert 0.45 < float(after[3]) - float(before[3]) < 0.7


def test_ten_minutes_without_anybody_mark_no_node(cluster: Cluster, hire: Hire) -> None:
    for number in range(3):
        cluster.node(f"n{number}")
    worker = hire()
    assert worker.run(MONITOR, cluster.due)
    cluster.step(600)
    assert worker.run(MONITOR, cluster.due)
    cluster.step(5)
    assert worker.run(MONITOR, cluster.due)
    assert [cluster.readiness(f"n{i}") for i in range(3)] == ["True"] * 3


def test_a_new_epoch_marks_no_node(cluster: Cluster, hire: Hire, io: RedisIO) -> None:
    cluster.node("n0")
    cluster.node("n1")
    worker = hire()
    assert worker.run(MONITOR, cluster.due)
    cluster.fall_silent(worker, "n1", seconds=35)
    cluster.step(8)  # no gap yet
    start = io.execute("INCRBY", io.keys.resource_version(), 1_000_000)
    io.execute("HSET", io.keys.meta(), "epoch_start", start)
    cluster.store.patch(NODES, "n1", {"metadata": {"labels": {"a": "b"}}})
    assert worker.run(MONITOR, cluster.due)
    assert cluster.readiness("n0") == "True"
    cluster.fall_silent(worker, "n1", seconds=10)
    assert cluster.readiness("n0") == "Unknown"


def test_direct_eviction_deletes_pods_node_by_node(cluster: Cluster, hire: Hire) -> None:
    for number in range(5):
        cluster.node(f"n{number}", pods=3)
    worker = hire(enable_taint_manager=False, pod_eviction_timeout=62)
    assert worker.run(MONITOR, cluster.due)
    cluster.fall_silent(worker, "n2", "n3", "n4", seconds=70)
    gone = [p.name for p in cluster.store.list(PODS).items if p.deleting]
    assert gone == ["n0-0", "n0-1", "n0-2"]
    cluster.step(1)
    worker.run(EVICT, cluster.due)
    assert len([p for p in cluster.store.list(PODS).items if p.deleting]) == 3
    cluster.step(9)
    worker.run(EVICT, cluster.due)
    assert len([p for p in cluster.store.list(PODS).items if p.deleting]) == 6
    assert cluster.list_tainted() == []


# --- the guard on taints


def test_a_pod_is_deleted_only_while_the_node_has_the_taints_that_were_judged(
    io: RedisIO, cluster: Cluster, hire: Hire
) -> None:
    store = Store(io)
    taint = Taint(key="away", value="now", effect="NoExecute")
    store.create(node("n1", taints=[taint]))
    store.create(pod("a", node="n1", phase="Running"))
    worker = hire()
    evictions = worker.context.controllers[1]
    plan: Plan = evictions.reconcile("n1", worker.context.caches.view(evictions, _now(worker)))
    store.patch(NODES, "n1", {"spec": {"taints": None}})
    from kcm.reconcile.executor import PlanExecutor

    outcome = PlanExecutor(store).execute(plan, None)
    assert [type(failure.error) for failure in outcome.failures] == [errors.GuardFailed]
    assert not store.get(PODS, "default/a").deleting
    store.patch(
        NODES, "n1", {"spec": {"taints": [{"key": "away", "value": "now", "effect": "NoExecute"}]}}
    )
    outcome = PlanExecutor(store).execute(plan, None)
    assert not outcome.failures
    assert store.get(PODS, "default/a").deleting


def _now(worker: Worker) -> Any:
    return worker.context.clock.now()


def test_nodes_are_found_by_their_no_execute_taints(io: RedisIO) -> None:
    store = Store(io)
    make_namespaces(store, "default")
    taints = [Taint(key="b", effect="NoExecute"), Taint(key="a", value="1", effect="NoExecute")]
    store.create(node("n1", taints=[*taints, Taint(key="c", effect="NoSchedule")]))
    store.create(node("n2"))
    entry = "noexecute:a=1,b="
    assert store.by_index(entry) == [("nodes", "n1")]
    store.patch(BUILT_IN.lookup("nodes"), "n1", {"spec": {"taints": None}})
    assert store.by_index(entry) == []


# --- memory


def test_an_eviction_outlives_every_worker(cluster: Cluster, hire: Hire, io: RedisIO) -> None:
    store = Store(io)
    store.create(node("n1", taints=[Taint(key="away", effect="NoExecute")]))
    hour = {"toleration_seconds": 3600}
    tolerations = [{"key": "away", "operator": "Exists", "effect": "NoExecute"} | hour]
    store.create(pod("a", node="n1", phase="Running", tolerations=tolerations))
    first, second = hire(), hire()
    for worker in (first, second):
        evictions = worker.context.controllers[1]
        queue = worker.context.queue(evictions)
        queue.add("n1")
        assert worker.context.runner(evictions).run("n1") == 1
        (note,) = io.execute("HVALS", io.keys.memory("tainteviction", "n1"))
        due = io.execute("ZSCORE", io.keys.queue("tainteviction", "delayed"), "n1")
        if worker is first:
            planned = note, due
    assert note == planned[0]
    assert abs(float(due) - float(planned[1])) < 50
    store.patch(NODES, "n1", {"spec": {"taints": None}})
    queue.add("n1")
    assert second.context.runner(evictions).run("n1") == 1
    assert io.execute("HLEN", io.keys.memory("tainteviction", "n1")) == 0
    second.context.recorder.flush()
    messages = [event.message for event in list_objects(store, Event)]
    assert messages == ["Cancelling deletion of Pod default/a"]
