"""Tolerations as a table."""

from __future__ import annotations

from math import inf

import pytest

from kcm.api.core_v1 import Taint, Toleration
from kcm.helpers.tolerations import min_toleration_seconds, tolerates

A = Taint(key="a", value="1", effect="NoExecute")
B = Taint(key="b", effect="NoExecute")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration(key="a", value="1", effect="NoExecute"), True),
        (Toleration(key="a", operator="Equal", value="1"), True),
        (Toleration(key="a", operator="Equal", value="2"), False),
        (Toleration(key="a"), False),
        (Toleration(key="a", operator="Exists"), True),
        (Toleration(key="a", operator="Exists", effect="NoSchedule"), False),
        (Toleration(key="b", operator="Exists"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(key="a", operator="Near", value="1"), False),
    ],
)
def test_a_toleration_covers_a_taint(toleration: Toleration, expected: bool) -> None:
    assert tolerates(toleration, A) is expected


def all_of(seconds: int | None = None, key: str | None = None) -> Toleration:
    return Toleration(key=key, operator="Exists", toleration_seconds=seconds)


@pytest.mark.parametrize(
    ("taints", "tolerations", "seconds"),
    [
        ([], None, inf),
        ([A], None, 0.0),
        ([A], [all_of()], inf),
        ([A], [all_of(30)], 30.0),
        ([A], [all_of(0)], 0.0),
        ([A], [all_of(-5)], 0.0),
        ([A, B], [all_of(30, "a")], 0.0),
        ([A, B], [all_of(30, "a"), all_of(20, "b")], 20.0),
        ([A, B], [all_of(30, "a"), all_of(None, "b")], 30.0),
        ([A], [all_of(30, "a"), all_of(20)], 30.0),  # the first one that matches
    ],
)
def test_a_pod_stays_as_long_as_the_shortest_says(
    taints: list[Taint], tolerations: list[Toleration] | None, seconds: float
) -> None:
    assert min_toleration_seconds(taints, tolerations) == seconds
