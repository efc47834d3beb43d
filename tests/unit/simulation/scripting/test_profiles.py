"""Profiles: amounts over time."""

from __future__ import annotations

import pytest

from kcm.simulation.scripting.profiles import profile, profiles


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("100m", 0, "100m"),
        ("100m", 1e9, "100m"),
        ("100m for 1m, 900m", 59, "100m"),
        ("100m for 1m, 900m", 60, "900m"),
        ("100m for 1m, 900m", 1e9, "900m"),
        ("100m for 1m, 2 for 30s", 89, "2"),
        ("100m for 1m, 2 for 30s", 90, "100m"),  # it begins again
        ("64Mi for never", 5, "64Mi"),
    ],
)
def test_an_amount_at_a_time(text: str, at: float, expected: str) -> None:
    assert str(profile(text).at(at)) == expected


def test_what_is_shared_is_split_evenly() -> None:
    shared = profile("shared 1 for 1m, 3")
    assert [str(shared.at(0, sharers)) for sharers in (0, 1, 4)] == ["1", "1", "250m"]
    assert str(shared.at(60, 2)) == "1500m"
    assert str(profile("shared 1Gi").at(0, 4)) == "256Mi"
    assert str(profile("1").at(0, 4)) == "1"


@pytest.mark.parametrize(
    "text", ["", "much", "1 for", "1 for 0s", "-1", "1, 2", "1 for never, 2 for 1s", "1 for 1m,"]
)
def test_what_is_no_profile_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must|only"):
        profile(text)


def test_no_pod_costs_the_reports_of_others_much() -> None:
    assert profile(", ".join(["1 for 1s"] * 100)).steps
    with pytest.raises(ValueError, match="at most 100 steps, not 101"):
        profile(", ".join(["1 for 1s"] * 101))
    with pytest.raises(ValueError, match="at most 50 metrics, not 51"):
        profiles(";".join(f"m{number}=1" for number in range(51)))


def test_metrics_have_names() -> None:
    parsed = profiles("hits=20; depth=shared 1 for 1m, 5")
    assert {name: str(one.at(60, 5)) for name, one in parsed.items()} == {
        "hits": "20",
        "depth": "1",
    }


@pytest.mark.parametrize("text", ["hits", "=20", "a/b=1", "hits=20;"])
def test_a_usage_that_is_not_valid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be like"):
        profiles(text)
