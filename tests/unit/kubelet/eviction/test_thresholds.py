"""Thresholds: what flags say, and when too little is left."""

from __future__ import annotations

import pytest

from kcm.api.quantity import Quantity
from kcm.errors import ConfigurationError
from kcm.kubelet.eviction.thresholds import (
    DEFAULT_HARD,
    Amount,
    Observation,
    Signal,
    Threshold,
    met,
    parse_thresholds,
    shown,
)

MEMORY, DISK, INODES, PIDS = Signal.MEMORY, Signal.DISK, Signal.INODES, Signal.PIDS


def of(text: str) -> Amount:
    return Amount(Quantity(text))


@pytest.mark.parametrize(
    ("hard", "soft", "grace", "reclaim", "expected"),
    [
        (
            DEFAULT_HARD, "", {}, "",
            [
                Threshold(MEMORY, of("100Mi")),
                Threshold(DISK, Amount(part=0.1)),
                Threshold(INODES, Amount(part=0.05)),
            ],
        ),
        ("", "", {}, "", []),
        ("memory.available<0%,nodefs.available<100%", "", {}, "", []),
        (
            "pid.available<1000", "memory.available<1Gi", {"memory.available": 90.0},
            "memory.available=2Gi",
            [
                Threshold(PIDS, of("1000")),
                Threshold(MEMORY, of("1Gi"), 90.0, of("2Gi")),
            ],
        ),
        (" memory.available<5% , ", "", {}, "", [Threshold(MEMORY, Amount(part=0.05))]),
    ],
)  # fmt: skip
def test_flags_are_read(
    hard: str, soft: str, grace: dict[str, float], reclaim: str, expected: list[Threshold]
) -> None:
    assert parse_thresholds(hard, soft, grace, reclaim) == expected


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("imagefs.available<10%", "", {}, ""), "'imagefs.available' is not watched"),
        (("memory.available=1Gi", "", {}, ""), "is not like memory.available<100Mi"),
        (("memory.available<-1Gi", "", {}, ""), "must not be negative"),
        (("memory.available<110%", "", {}, ""), "between 0% and 100%"),
        (("memory.available<much", "", {}, ""), "'much'"),
        (("", "memory.available<1Gi", {}, ""), "grace period must be specified"),
        (("", "", {"cpu": 1.0}, ""), "'cpu' is not watched"),
        (("", "", {}, "memory.available<1Gi"), "is not like memory.available=100Mi"),
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
        (Threshold(MEMORY, Amount(part=0.1)), 100, False, False),
        (Threshold(MEMORY, Amount(part=0.1)), 99, False, True),
        (Threshold(MEMORY, of("100"), reclaim=of("50")), 120, False, False),
        (Threshold(MEMORY, of("100"), reclaim=of("50")), 120, True, True),
        (Threshold(MEMORY, of("100"), reclaim=of("50")), 150, True, False),
        (Threshold(MEMORY, of("100"), reclaim=Amount(part=0.05)), 149, True, True),
        (Threshold(PIDS, of("100")), 0, False, False),  # nothing is known of it
    ],
)
def test_less_than_the_value_is_too_little(
    threshold: Threshold, available: int, reclaimed: bool, too_little: bool
) -> None:
    observed = {MEMORY: Observation(available, 1000)}
    assert bool(met([threshold], observed, reclaimed=reclaimed)) is too_little


def test_amounts_are_shown_in_the_units_of_their_resource() -> None:
    assert str(shown(MEMORY, 3 * 2**20)) == "3Mi"
    assert str(shown(PIDS, 2000)) == "2k"
