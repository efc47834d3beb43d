"""Eviction thresholds: parsing the flags, and finding those that are met."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kcm.apimachinery.quantity import Quantity
from kcm.errors import ConfigurationError
from kcm.kubelet.eviction.thresholds import (
    DEFAULT_HARD,
    RESOURCES,
    Observation,
    Signal,
    Threshold,
    ThresholdValue,
    drop_containerfs,
    find_met,
    format_amount,
    observe,
    parse_thresholds,
)
from kcm.kubelet.stats.machine import MachineUsage

MEMORY, DISK, INODES, PIDS = Signal.MEMORY, Signal.DISK, Signal.INODES, Signal.PIDS
GI = 2**30
AT = datetime(2026, 1, 1, tzinfo=UTC)
MACHINE = MachineUsage(AT, 0, 10 * GI, 5 * GI, 100, 14, 1000, 500, 10, 40)


def of(text: str) -> ThresholdValue:
    return ThresholdValue(Quantity(text))


@pytest.mark.parametrize(
    ("hard", "soft", "grace", "reclaim", "expected"),
    [
        (
            DEFAULT_HARD, "", {}, "",
            [
                Threshold(MEMORY, of("100Mi")),
                Threshold(DISK, ThresholdValue(fraction=0.1)),
                Threshold(INODES, ThresholdValue(fraction=0.05)),
                Threshold(Signal.IMAGE_DISK, ThresholdValue(fraction=0.15)),
                Threshold(Signal.IMAGE_INODES, ThresholdValue(fraction=0.05)),
            ],
        ),
        (
            "containerfs.inodesFree<7%", "containerfs.available<1Gi", {"containerfs.available": 5},
            "containerfs.available=2Gi",
            [
                Threshold(Signal.CONTAINER_INODES, ThresholdValue(fraction=0.07)),
                Threshold(Signal.CONTAINER_DISK, of("1Gi"), 5, of("2Gi")),
            ],
        ),
        ("", "", {}, "", []),
        ("memory.available<0%,nodefs.available<100%", "", {}, "", []),
        ("", "memory.available<0%,nodefs.available<100%", {}, "", []),
        ("", "memory.available<0%", {"memory.available": 30}, "memory.available=0", []),
        (
            "pid.available<1000", "memory.available<1Gi", {"memory.available": 90.0},
            "memory.available=2Gi",
            [
                Threshold(PIDS, of("1000")),
                Threshold(MEMORY, of("1Gi"), 90.0, of("2Gi")),
            ],
        ),
        (" memory.available<5% , ", "", {}, "", [Threshold(MEMORY, ThresholdValue(fraction=0.05))]),
    ],
)  # fmt: skip
def test_flags_are_read(
    hard: str, soft: str, grace: dict[str, float], reclaim: str, expected: list[Threshold]
) -> None:
    """TestParseThresholdConfig (eviction/helpers_test.go)."""
    assert parse_thresholds(hard, soft, grace, reclaim) == expected


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("allocatableMemory.available<10%", "", {}, ""),
            "is not an eviction signal; the signals are memory",
        ),
        (("", "containerfs.available<1Gi", {}, ""), "grace period must be specified"),
        (("memory.available=1Gi", "", {}, ""), "is not of the form memory.available<100Mi"),
        (("memory.available<-1Gi", "", {}, ""), "must not be negative"),
        (("memory.available<110%", "", {}, ""), "between 0% and 100%"),
        (("memory.available<much", "", {}, ""), "'much'"),
        (("", "memory.available<1Gi", {}, ""), "grace period must be specified"),
        (("", "", {"cpu": 1.0}, ""), "'cpu' is not an eviction signal"),
        (("", "", {}, "memory.available<1Gi"), "is not of the form memory.available=100Mi"),
    ],
)
def test_flags_that_make_no_sense_are_refused(
    arguments: tuple[str, str, dict[str, float], str], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        parse_thresholds(*arguments)


@pytest.mark.parametrize(
    ("threshold", "available", "reclaimed", "too_little"),
    [
        (Threshold(MEMORY, of("100")), 100, False, False),
        (Threshold(MEMORY, of("100")), 99, False, True),
        (Threshold(MEMORY, ThresholdValue(fraction=0.1)), 100, False, False),
        (Threshold(MEMORY, ThresholdValue(fraction=0.1)), 99, False, True),
        (Threshold(MEMORY, of("100"), min_reclaim=of("50")), 120, False, False),
        (Threshold(MEMORY, of("100"), min_reclaim=of("50")), 120, True, True),
        (Threshold(MEMORY, of("100"), min_reclaim=of("50")), 150, True, False),
        (Threshold(MEMORY, of("100"), min_reclaim=ThresholdValue(fraction=0.05)), 149, True, True),
        (Threshold(PIDS, of("100")), 0, False, False),  # nothing is known of it
    ],
)
def test_less_than_the_value_is_too_little(
    threshold: Threshold, available: int, reclaimed: bool, too_little: bool
) -> None:
    observed = {MEMORY: Observation(available, 1000)}
    assert bool(find_met([threshold], observed, enforce_min_reclaim=reclaimed)) is too_little


def test_amounts_are_shown_in_the_units_of_their_resource() -> None:
    assert str(format_amount(MEMORY, 3 * 2**20)) == "3Mi"
    assert str(format_amount(PIDS, 2000)) == "2k"


@pytest.mark.parametrize(
    ("signal", "resource", "condition", "observation"),
    [
        (Signal.MEMORY, "memory", "MemoryPressure", Observation(5 * GI, 10 * GI)),
        (Signal.DISK, "ephemeral-storage", "DiskPressure", Observation(14, 100)),
        (Signal.IMAGE_DISK, "ephemeral-storage", "DiskPressure", Observation(14, 100)),
        (Signal.CONTAINER_DISK, "ephemeral-storage", "DiskPressure", Observation(14, 100)),
        (Signal.INODES, "inodes", "DiskPressure", Observation(500, 1000)),
        (Signal.IMAGE_INODES, "inodes", "DiskPressure", Observation(500, 1000)),
        (Signal.CONTAINER_INODES, "inodes", "DiskPressure", Observation(500, 1000)),
        (Signal.PIDS, "pids", "PIDPressure", Observation(30, 40)),
    ],
)
def test_the_signals_of_one_disk_say_the_same(
    signal: Signal, resource: str, condition: str, observation: Observation
) -> None:
    assert (RESOURCES[signal], signal.condition) == (resource, condition)
    assert observe(MACHINE)[signal] == observation


@pytest.mark.parametrize(
    ("flags", "too_little"),
    [
        (DEFAULT_HARD, [Signal.IMAGE_DISK]),  # 14% are left
        ("nodefs.available<15%", [Signal.DISK]),
        ("nodefs.available<10%,containerfs.available<50%", []),
        ("containerfs.available<50%,containerfs.inodesFree<60%", []),
        ("imagefs.inodesFree<60%", [Signal.IMAGE_INODES]),
    ],
)
def test_images_have_thresholds_of_their_own_and_containers_have_those_of_the_node(
    flags: str, too_little: list[Signal]
) -> None:
    thresholds = drop_containerfs(parse_thresholds(flags, "", {}, ""))
    assert [one.signal for one in find_met(thresholds, observe(MACHINE))] == too_little
