"""Tests stabilization windows, scaling policies and bounds, by the cases of upstream's
horizontal_test.go.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kcm.controllers.horizontalpodautoscaling.behavior import Bounds, Normalizer, ScalingDecision
from kcm.controllers.horizontalpodautoscaling.history import History, ReplicaMark
from kcm.testing.views import NOW
from tests.unit.controllers.autoscaling import MINUTE, autoscaler

FIVE_MINUTES = 5 * MINUTE
READY = "ReadyForNewScale"


def marks(*pairs: tuple[int, float]) -> tuple[ReplicaMark, ...]:
    """Returns a history of replicas. Each pair is a replica count and how many seconds ago it was
    set.
    """
    return tuple(ReplicaMark(replicas, NOW.timestamp() - ago) for replicas, ago in pairs)


def decide(
    wanted: int,
    current: int,
    *,
    behavior: dict[str, Any] | None = None,
    low: int = 1,
    high: int = 1000,
    recent: tuple[ReplicaMark, ...] = (),
    up: tuple[ReplicaMark, ...] = (),
    down: tuple[ReplicaMark, ...] = (),
) -> ScalingDecision:
    spec = autoscaler(**({} if behavior is None else {"behavior": behavior})).spec
    normalizer = Normalizer(spec.behavior, FIVE_MINUTES, NOW)
    history = History("uid", recent, up, down)
    return normalizer.decide(wanted, Bounds(current, low, high), history)


def summarize(decision: ScalingDecision) -> tuple[int, str, str, bool]:
    return decision.replicas, decision.able[0], decision.limit[0], decision.limited


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"wanted": 3, "current": 3}, (3, READY, "DesiredWithinRange", False)),
        ({"wanted": 5, "current": 3}, (5, READY, "DesiredWithinRange", False)),
        ({"wanted": 9, "current": 3}, (6, READY, "ScaleUpLimit", True)),
        ({"wanted": 9, "current": 1}, (4, READY, "ScaleUpLimit", True)),
        ({"wanted": 6, "current": 3, "high": 5}, (5, READY, "TooManyReplicas", True)),
        ({"wanted": 1, "current": 3, "low": 2}, (2, READY, "TooFewReplicas", True)),
        ({"wanted": 0, "current": 3}, (1, READY, "TooFewReplicas", True)),
        (
            {"wanted": 2, "current": 5, "recent": marks((4, 60), (9, 400))},
            (4, "ScaleDownStabilized", "DesiredWithinRange", False),
        ),
        (
            {"wanted": 2, "current": 5, "recent": marks((4, 400))},
            (2, READY, "DesiredWithinRange", False),
        ),
        (
            {"wanted": 7, "current": 5, "recent": marks((2, 10))},
            (7, READY, "DesiredWithinRange", False),
        ),
    ],
)
def test_without_a_behavior(given: dict[str, Any], expected: tuple[int, str, str, bool]) -> None:
    assert summarize(decide(**given)) == expected


def rules(*policies: tuple[str, int, int], select: str = "Max", window: int | None = 0) -> Any:
    rules_of_policies: dict[str, Any] = {
        "selectPolicy": select,
        "policies": [
            {"type": type_, "value": value, "periodSeconds": period}
            for type_, value, period in policies
        ],
    }
    return rules_of_policies | ({} if window is None else {"stabilizationWindowSeconds": window})


PODS_4, HALF = ("Pods", 4, 60), ("Percent", 50, 60)


@pytest.mark.parametrize(
    ("policies", "select", "current", "changes", "expected"),
    [
        ([PODS_4], "Max", 10, {}, 14),
        ([HALF], "Max", 10, {}, 15),
        ([PODS_4, HALF], "Max", 10, {}, 15),
        ([PODS_4, HALF], "Min", 10, {}, 14),
        ([PODS_4, HALF], "Disabled", 10, {}, 10),
        ([("Percent", 10, 60)], "Max", 1, {}, 2),  # rounded up, or it would never grow
        # what was added and taken away within the period counts
        ([PODS_4], "Max", 10, {"up": marks((3, 30))}, 11),
        ([PODS_4], "Max", 10, {"up": marks((3, 90))}, 14),
        ([PODS_4], "Max", 10, {"up": marks((9, 30))}, 10),
        ([PODS_4], "Max", 10, {"down": marks((2, 30))}, 16),
        ([HALF], "Max", 12, {"up": marks((4, 30))}, 12),
        ([("Pods", 4, 60), ("Pods", 6, 300)], "Max", 10, {"up": marks((5, 120))}, 14),
    ],
)
def test_a_rate_of_scaling_up_allows(
    policies: list[tuple[str, int, int]],
    select: str,
    current: int,
    changes: dict[str, Any],
    expected: int,
) -> None:
    behavior = {"scaleUp": rules(*policies, select=select)}
    decision = decide(100, current, behavior=behavior, **changes)
    assert summarize(decision) == (expected, READY, "ScaleUpLimit", True)


@pytest.mark.parametrize(
    ("policies", "select", "current", "changes", "expected"),
    [
        ([PODS_4], "Max", 10, {}, 6),
        ([HALF], "Max", 10, {}, 5),
        ([PODS_4, HALF], "Max", 10, {}, 5),
        ([PODS_4, HALF], "Min", 10, {}, 6),
        ([PODS_4, HALF], "Disabled", 10, {}, 10),
        ([PODS_4], "Max", 10, {"down": marks((3, 30))}, 9),
        ([PODS_4], "Max", 10, {"down": marks((3, 90))}, 6),
        ([PODS_4], "Max", 10, {"down": marks((9, 30))}, 10),
        ([PODS_4], "Max", 10, {"up": marks((2, 30))}, 4),
    ],
)
def test_a_rate_of_scaling_down_allows(
    policies: list[tuple[str, int, int]],
    select: str,
    current: int,
    changes: dict[str, Any],
    expected: int,
) -> None:
    behavior = {"scaleDown": rules(*policies, select=select)}
    decision = decide(1, current, behavior=behavior, **changes)
    assert summarize(decision) == (expected, READY, "ScaleDownLimit", True)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"wanted": 50, "current": 10, "high": 12}, (12, READY, "TooManyReplicas", True)),
        ({"wanted": 1, "current": 3, "low": 2}, (2, READY, "TooFewReplicas", True)),
        ({"wanted": 9, "current": 10}, (9, READY, "DesiredWithinRange", False)),
    ],
)
def test_bounds_hold_with_a_behavior(
    given: dict[str, Any], expected: tuple[int, str, str, bool]
) -> None:
    behavior = {"scaleUp": rules(("Pods", 100, 60)), "scaleDown": rules(("Pods", 100, 60))}
    assert summarize(decide(**given, behavior=behavior)) == expected


@pytest.mark.parametrize(
    ("wanted", "recent", "expected"),
    [
        (12, marks((11, 30)), (11, "ScaleUpStabilized")),
        (12, marks((11, 90)), (12, READY)),
        (12, marks((7, 30)), (10, "ScaleUpStabilized")),  # never down on the way up
        (8, marks((9, 90)), (9, "ScaleDownStabilized")),
        (8, marks((9, 150)), (8, READY)),
        (8, marks((15, 90)), (10, "ScaleDownStabilized")),
    ],
)
def test_windows_hold_in_both_directions(
    wanted: int, recent: tuple[ReplicaMark], expected: tuple[int, str]
) -> None:
    fast = ("Pods", 100, 15)
    behavior = {"scaleUp": rules(fast, window=60), "scaleDown": rules(fast, window=120)}
    decision = decide(wanted, 10, behavior=behavior, recent=recent)
    assert (decision.replicas, decision.able[0]) == expected


def test_without_a_window_in_the_behavior_the_flags_counts_going_down() -> None:
    behavior = {"scaleDown": rules(("Pods", 100, 15), window=None)}
    assert decide(5, 10, behavior=behavior, recent=marks((9, 200))).replicas == 9
    assert decide(5, 10, behavior=behavior, recent=marks((9, 310))).replicas == 5


def test_history_is_kept_as_long_as_it_counts_and_outlives_a_worker() -> None:
    history = History("uid", marks((3, 400), (4, 100)), marks((1, 90)), marks((2, 20)))
    history = history.with_recommendation(5, NOW, FIVE_MINUTES)
    history = history.with_rescale(5, 8, NOW, up=MINUTE, down=MINUTE)
    loaded = History.load(history.state(), "uid")
    assert loaded == history
    assert loaded.recommendations == marks((4, 100), (5, 0))
    assert (loaded.up, loaded.down) == (marks((3, 0)), marks((2, 20)))


def test_the_history_of_another_autoscaler_of_the_same_name_does_not_count() -> None:
    assert History.load(History("old", marks((3, 1))).state(), "new") == History("new")


def test_a_normalizer_knows_how_long_to_remember() -> None:
    behavior = {"scaleUp": rules(PODS_4, ("Pods", 1, 300)), "scaleDown": rules(HALF, window=900)}
    normalizer = Normalizer(autoscaler(behavior=behavior).spec.behavior, FIVE_MINUTES, NOW)
    assert normalizer.longest_window == timedelta(seconds=900)
    assert normalizer.periods == (timedelta(seconds=300), timedelta(seconds=60))
