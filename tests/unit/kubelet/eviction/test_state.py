"""The change of PressureState over time."""

from __future__ import annotations

from kcm.apimachinery.quantity import Quantity
from kcm.kubelet.eviction.state import PressureState, advance_pressure
from kcm.kubelet.eviction.thresholds import Observation, Signal, Threshold, ThresholdValue

HARD = Threshold(
    Signal.MEMORY, ThresholdValue(Quantity(100)), min_reclaim=ThresholdValue(Quantity(50))
)
SOFT = Threshold(Signal.DISK, ThresholdValue(Quantity(200)), grace_period=30.0)
TRANSITION = 60.0


def run(*looks: tuple[float, int, int]) -> list[tuple[list[Signal], set[str]]]:
    """Returns the acting signals and the conditions after each observation.

    An observation is a tuple of the time, the memory and the disk that are left.
    """
    pressure, rounds = PressureState(), []
    for now, memory, disk in looks:
        observed = {
            Signal.MEMORY: Observation(memory, 1000),
            Signal.DISK: Observation(disk, 1000),
        }
        pressure = advance_pressure(
            pressure, [HARD, SOFT], observed, now=now, transition_period=TRANSITION
        )
        rounds.append(([one.signal for one in pressure.acting], set(pressure.conditions)))
    return rounds


def test_a_hard_threshold_acts_at_once_until_enough_is_reclaimed() -> None:
    assert run((0, 99, 999), (10, 120, 999), (20, 150, 999)) == [
        ([Signal.MEMORY], {"MemoryPressure"}),
        ([Signal.MEMORY], {"MemoryPressure"}),
        ([], {"MemoryPressure"}),
    ]


def test_a_soft_threshold_acts_after_its_grace() -> None:
    assert [acting for acting, _ in run((0, 999, 1), (29, 999, 1), (30, 999, 1))] == [
        [], [], [Signal.DISK],
    ]  # fmt: skip


def test_a_soft_threshold_that_was_left_meanwhile_begins_anew() -> None:
    looks = ((0, 999, 1), (20, 999, 500), (30, 999, 1), (59, 999, 1), (60, 999, 1))
    assert [bool(acting) for acting, _ in run(*looks)] == [False, False, False, False, True]


def test_a_condition_stays_for_the_transition_period() -> None:
    assert [kinds for _, kinds in run((0, 99, 999), (59, 999, 999), (61, 999, 999))] == [
        {"MemoryPressure"}, {"MemoryPressure"}, set(),
    ]  # fmt: skip
    # It is counted from the last time that it was seen.
    kinds = [kinds for _, kinds in run((0, 99, 1), (50, 99, 999), (100, 999, 999))]
    assert kinds == [{"MemoryPressure", "DiskPressure"}] * 2 + [{"MemoryPressure"}]


def test_a_soft_threshold_is_a_condition_from_the_first() -> None:
    assert run((0, 999, 1)) == [([], {"DiskPressure"})]
