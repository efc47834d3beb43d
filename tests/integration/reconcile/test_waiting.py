"""Tests that a run waits for more keys where the dispatcher is, and when it does not."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import pytest

from kcm.coordination import FencedLease
from kcm.coordination.workqueue import Addition, Standby, WorkQueue, dispatch
from kcm.manager.context.context import ControllerContext, build_context
from kcm.manager.queues import queue_config
from kcm.reconcile.contract import Controller, View
from kcm.reconcile.plan import Plan
from kcm.reconcile.runner import Runner, SyncFailed
from kcm.redisio import Fence, RedisIO
from kcm.settings import Settings
from kcm.testing.waiting import until


class Noting(Controller):
    """Notes the keys that it syncs. It fails for `broken`."""

    name = "noting-controller"
    short_name = "noting"

    def __init__(self) -> None:
        self.synced: list[str] = []

    def reconcile(self, key: str, view: View) -> Plan:
        self.synced.append(key)
        if key == "broken":
            raise ValueError("no such thing")
        return Plan()


class System:
    """A process that runs syncs in threads, and dispatches."""

    def __init__(self, context: ControllerContext, controller: Noting) -> None:
        self.context = context
        self.standby = context.standby
        self.synced = controller.synced
        self.queue: WorkQueue = context.queue(controller)
        self.queue.configure(queue_config(controller))
        self.runner: Runner = context.runner(controller)
        lease = FencedLease(context.io, "dispatch:pods", "one")
        assert lease.try_acquire()
        self.fence: Fence = lease.fence

    def dispatch(self, key: str) -> None:
        """Adds a key as the dispatcher does."""
        with self.standby.reserve({"noting"}) as offer:
            additions = [Addition("noting", (key,))]
            done = dispatch(self.context.io, self.fence, {}, additions, waiting=offer.names)
            offer.hand_over(done.taken)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture
def system(io: RedisIO, settings: Settings, pool: ThreadPoolExecutor) -> Iterator[System]:
    controller = Noting()
    context = build_context(settings)
    context.selection = replace(context.selection, started=(controller,))
    context.standby = Standby(threads=2)
    context.start()
    yield System(context, controller)
    context.shutdown()


def begin(system: System, pool: ThreadPoolExecutor, key: str) -> Future[int]:
    """Starts a run with a key, and returns when it waits for the next one."""
    system.queue.add(key)
    run = pool.submit(system.runner.run, key)
    until(lambda: system.standby.list_waiting() == ("noting",))
    return run


def test_a_run_syncs_the_next_key_without_a_message(
    system: System, pool: ThreadPoolExecutor
) -> None:
    run = begin(system, pool, "first")
    sent = system.queue.stats().messages
    system.dispatch("second")
    until(lambda: system.synced == ["first", "second"])
    assert run.result(10) == 2
    assert system.queue.stats().messages == sent
    assert system.queue.stats().running == 0


def test_a_run_in_which_a_key_failed_ends_at_once_and_says_so(system: System) -> None:
    system.queue.add("broken")
    with pytest.raises(SyncFailed, match="broken: no such thing"):
        system.runner.run("broken")
    assert system.standby.list_waiting() == ()


def test_a_run_that_was_given_a_key_which_fails_says_so(
    system: System, pool: ThreadPoolExecutor
) -> None:
    run = begin(system, pool, "first")
    system.dispatch("broken")
    with pytest.raises(SyncFailed, match="broken: no such thing"):
        run.result(10)


def test_a_run_that_found_no_key_does_not_wait(system: System) -> None:
    assert system.runner.run("gone") == 0
    assert system.standby.list_waiting() == ()


def test_stopping_the_process_ends_a_run_that_waits(
    system: System, pool: ThreadPoolExecutor
) -> None:
    run = begin(system, pool, "first")
    system.context.stop_loops()
    assert run.result(10) == 1
