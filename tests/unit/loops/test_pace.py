"""Tests that the reads of a busy reader are delayed, and those of an idle one are not."""

from kcm.loops.pace import ReadPace
from kcm.testing.clock import FakeClock


def test_a_few_reads_follow_each_other_at_once_and_further_ones_at_the_interval() -> None:
    clock = FakeClock()
    pace = ReadPace(clock, shortest=0.001, interval=0.01, burst=3)
    pauses = []
    for _ in range(5):
        pauses.append(pace.count_read())
        clock.step(pauses[-1])
    assert pauses == [0.001, 0.001, 0.01, 0.01, 0.01]


def test_after_a_time_without_reads_the_next_ones_are_at_once_again() -> None:
    clock = FakeClock()
    pace = ReadPace(clock, shortest=0.001, interval=0.01, burst=3)
    for _ in range(4):
        pace.count_read()
    clock.step(1)
    assert [pace.count_read() for _ in range(3)] == [0.001, 0.001, 0.01]
