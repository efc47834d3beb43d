"""Tests which runs wait for keys, for how long, and who ends them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from kcm.coordination.workqueue import KeyLease, Standby
from kcm.redisio import Fence
from kcm.testing.waiting import until

LONG = 30.0  # seconds; no test waits for them
LEASE = KeyLease("pods", "default/web", "7", 0, 0.0, Fence("running", "default/web", "7"), 30.0)


class Runs:
    """Runs in threads, which wait for keys."""

    def __init__(self, standby: Standby, pool: ThreadPoolExecutor) -> None:
        self._standby = standby
        self._pool = pool

    def wait(self, name: str, patience: float = LONG) -> Future[Sequence[KeyLease]]:
        """Starts a run that waits, and returns when it does."""
        run = self._pool.submit(self._standby.wait, name, patience)
        until(lambda: name in self._standby.list_waiting() or run.done())
        return run


@pytest.fixture
def standby() -> Standby:
    return Standby(threads=4)


@pytest.fixture
def runs(standby: Standby) -> Iterator[Runs]:
    with ThreadPoolExecutor(4) as pool:
        yield Runs(standby, pool)
        standby.close()


def give(standby: Standby, *names: str, to: Collection[str] = ()) -> None:
    with standby.reserve(names) as offer:
        offer.hand_over({name: [LEASE] for name in to})


def test_a_waiting_run_is_given_the_keys_that_were_taken_for_it(
    standby: Standby, runs: Runs
) -> None:
    run = runs.wait("pods")
    with standby.reserve({"pods", "nodes"}) as offer:
        assert offer.names == ("pods",)
        offer.hand_over({"pods": [LEASE]})
    assert run.result(LONG) == [LEASE]


def test_a_run_that_is_offered_and_given_nothing_ends(standby: Standby, runs: Runs) -> None:
    run = runs.wait("pods")
    give(standby, "pods")
    assert run.result(LONG) == []


def test_runs_of_other_queues_go_on_waiting(standby: Standby, runs: Runs) -> None:
    pods, nodes = runs.wait("pods"), runs.wait("nodes")
    give(standby, "nodes", to=["nodes"])
    assert nodes.result(LONG) == [LEASE]
    assert not pods.done()


def test_a_run_whose_dispatch_fails_ends(standby: Standby, runs: Runs) -> None:
    run = runs.wait("pods")
    with pytest.raises(OSError), standby.reserve({"pods"}):  # noqa: PT011
        raise OSError
    assert run.result(LONG) == []


def test_a_run_waits_no_longer_than_its_patience(standby: Standby) -> None:
    assert standby.wait("pods", patience=0.0) == []
    assert standby.list_waiting() == ()


def test_a_run_whose_patience_ends_while_it_is_offered_gets_its_keys(
    standby: Standby, runs: Runs
) -> None:
    run = runs.wait("pods", patience=0.05)
    with standby.reserve({"pods"}) as offer:
        with pytest.raises(TimeoutError):
            run.result(0.2)
        offer.hand_over({"pods": [LEASE]})
    assert run.result(LONG) == [LEASE]


def test_one_run_of_a_queue_waits(standby: Standby, runs: Runs) -> None:
    first = runs.wait("pods")
    assert standby.wait("pods", LONG) == []
    assert not first.done()


def test_half_of_the_threads_wait_and_the_oldest_makes_room(runs: Runs) -> None:
    first, second, third = runs.wait("pods"), runs.wait("nodes"), runs.wait("jobs")
    assert first.result(LONG) == []
    assert not second.done()
    assert not third.done()


@pytest.mark.parametrize("threads", [0, 1])
def test_a_process_that_could_run_nothing_else_does_not_wait(threads: int) -> None:
    assert Standby(threads).wait("pods", LONG) == []


def test_closing_ends_all_runs_and_none_waits_again(standby: Standby, runs: Runs) -> None:
    run = runs.wait("pods")
    standby.close()
    assert run.result(LONG) == []
    assert standby.wait("nodes", LONG) == []
