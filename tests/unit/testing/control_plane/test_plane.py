"""What a control plane says before it has started, and the small functions around it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kcm import errors
from kcm.testing.control_plane.plane import ControlPlane, is_usable
from kcm.testing.control_plane.timing import Duration, to_seconds

READY = {"type": "Ready", "status": "True"}


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        ("90s", 90.0),
        ("1m30s", 90.0),
        ("1h", 3600.0),
        ("30d", 2_592_000.0),
        ("-1d12h", -129_600.0),
        ("0.5d", 43_200.0),
        (2, 2.0),
        (timedelta(minutes=1), 60.0),
    ],
)
def test_durations_are_text_seconds_or_timedeltas(duration: Duration, seconds: float) -> None:
    assert to_seconds(duration) == seconds


@pytest.mark.parametrize("duration", ["", "d", "1h1d", "soon", "1 d", None, []])
def test_what_is_no_duration_is_told(duration: Any) -> None:
    with pytest.raises(ValueError, match='a duration is text like "90s", "1h30m" or "30d"'):
        to_seconds(duration)


@pytest.mark.parametrize(
    ("node", "usable"),
    [
        ({"status": {"conditions": [READY]}}, True),
        ({"status": {"conditions": [{**READY, "status": "False"}]}}, False),
        ({"status": {}}, False),
        ({}, False),
        ({"spec": {"taints": [{"key": "a"}]}, "status": {"conditions": [READY]}}, False),
    ],
)
def test_a_usable_node_is_ready_and_has_no_taints(node: dict[str, Any], usable: bool) -> None:
    assert is_usable(node) is usable


def test_a_control_plane_that_has_not_started_says_how_to_start_it() -> None:
    with pytest.raises(errors.ConfigurationError, match="has not started: use `with ControlPlane"):
        _ = ControlPlane().kubeconfig


@pytest.mark.parametrize("arguments", [{"bare": True}, {"storage_class": False}])
def test_an_empty_control_plane_is_a_loop(arguments: dict[str, Any]) -> None:
    with pytest.raises(errors.ConfigurationError, match='are for mode="loop"'):
        ControlPlane(mode="processes", **arguments)


def test_an_empty_control_plane_has_the_nodes_that_are_asked_for() -> None:
    assert not list(ControlPlane(bare=True).nodes)
    assert [node.name for node in ControlPlane(bare=True, nodes=2).nodes] == ["node-1", "node-2"]
    assert [node.name for node in ControlPlane().nodes] == ["node-1"]
