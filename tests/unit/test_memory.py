"""When memory is collected and given back."""

from __future__ import annotations

import pytest

from kcm.memory import GROWTH, TRIM_EVERY, MemoryKeeper

MEBIBYTE = 1024 * 1024


class Process:
    """The memory and the clock of a process, and what was done about its memory."""

    def __init__(self) -> None:
        self.size, self.time, self.garbage = 100 * MEBIBYTE, 0.0, 0
        self.collections = self.trims = 0
        self.keeper = MemoryKeeper(
            lambda: self.size, self._collect, self._trim, now=lambda: self.time
        )

    def _collect(self) -> None:
        self.collections += 1
        self.size -= self.garbage
        self.garbage = 0

    def _trim(self) -> None:
        self.trims += 1

    def wait(self) -> None:
        """Lets so much time pass that memory may be given back again, and looks."""
        self.time += TRIM_EVERY
        self.keeper.look()


@pytest.fixture
def process() -> Process:
    return Process()


def test_a_process_that_does_not_grow_is_left_alone(process: Process) -> None:
    for _ in range(3):
        process.size += GROWTH // 4
        process.wait()
    assert (process.collections, process.trims) == (0, 0)


def test_growth_is_collected_at_once_and_what_stays_is_the_new_measure(process: Process) -> None:
    process.garbage = GROWTH // 2
    process.size += GROWTH + process.garbage
    process.keeper.look()
    process.keeper.look()
    assert process.collections == 1
    process.size += GROWTH
    process.keeper.look()
    assert process.collections == 2


def test_growth_after_a_decline_counts_from_the_lowest(process: Process) -> None:
    process.size -= 2 * GROWTH
    process.keeper.look()
    process.size += GROWTH
    process.keeper.look()
    assert process.collections == 1


def test_memory_is_given_back_until_that_helps_no_longer(process: Process) -> None:
    process.size += GROWTH
    process.keeper.look()
    assert process.trims == 0  # it may be in use
    process.wait()
    process.size -= GROWTH  # this is what it was good for
    for _ in range(10):
        process.wait()
    assert process.trims == 4
