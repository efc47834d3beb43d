from __future__ import annotations

from typing import Any

import pytest

from kcm import errors
from kcm.simulation.options import SimulatorOptions, parse_capacity


def test_nodes_are_numbered_and_spread_over_zones() -> None:
    options = SimulatorOptions(count=4, zones=("a", "b"))
    assert options.names() == ["node-1", "node-2", "node-3", "node-4"]
    assert [options.zone_of(index) for index in range(4)] == ["a", "b", "a", "b"]
    assert options.address_of(0) == "172.16.0.1"


def test_capacity_is_read_and_completed() -> None:
    capacity = parse_capacity("cpu=64,nvidia.com/gpu=8")
    assert (str(capacity["cpu"]), str(capacity["nvidia.com/gpu"]), str(capacity["pods"])) == (
        "64",
        "8",
        "110",
    )


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"count": -1}, "--count"),
        ({"zones": ("",)}, "no zone name"),
        ({"zones": ("A b",)}, "no zone name"),
        ({"name_prefix": "Node_"}, "--name-prefix"),
        ({"pod_cidr": "10.0.0.0"}, "--pod-cidr"),
        ({"node_cidr": "10.0.0.0/30", "count": 5}, "has 2 addresses for 5 nodes"),
        ({"lease_duration": 0}, "--node-lease-duration-seconds"),
    ],
)
def test_what_cannot_be_is_refused_by_the_name_of_its_flag(
    changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(errors.ConfigurationError, match=why):
        SimulatorOptions(**changes)


@pytest.mark.parametrize("text", ["cpu", "cpu=x", "=4", "cpu=-1"])
def test_a_wrong_capacity_is_refused(text: str) -> None:
    with pytest.raises(errors.ConfigurationError, match="--capacity"):
        parse_capacity(text)
