"""Waits for conditions while programs outside act in the machine's time."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from kcm.testing import ControlPlane
from tests.integration.testing.objects import pod
from tests.integration.testing.outsiders import MAPS, counting_operator

FIRST = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm-1"}}


@pytest.fixture(scope="module")
def started() -> Iterator[ControlPlane]:
    with ControlPlane(seed=1) as plane:
        yield plane


@pytest.fixture
def plane(started: ControlPlane) -> Iterator[ControlPlane]:
    yield started
    for one in started.list("configmaps"):
        started.delete(f"configmap/{one['metadata']['name']}")


def count(plane: ControlPlane) -> int:
    return len([one for one in plane.list("configmaps") if one["metadata"]["name"][:3] == "cm-"])


def count_as(plane: ControlPlane, agent: str) -> int:
    """Counts with a client that the control plane does not know for the test's own."""
    read = plane.objects.client.get(MAPS, headers={"user-agent": agent}).json()["items"]
    return len([one for one in read if one["metadata"]["name"][:3] == "cm-"])


def test_a_time_that_stands_still_waits_for_an_operator_that_thinks(plane: ControlPlane) -> None:
    before = plane.clock.now
    with counting_operator(plane, up_to=3, thinks=0.4):
        plane.apply(FIRST)
        plane.eventually(lambda: count(plane) == 3, within="1s")
    assert plane.clock.now == before


def test_an_operator_that_stays_quiet_is_waited_for_once(plane: ControlPlane) -> None:
    before = plane.clock.now
    with counting_operator(plane, up_to=1, thinks=0):
        plane.apply(FIRST)
        with pytest.raises(
            AssertionError, match=r"lambda: count_as\(plane, \"mine\"\) == 2 did not"
        ):
            plane.eventually(lambda: count_as(plane, "mine") == 2, within="12h", grace="100ms")
        # Twelve hours have hundreds of moments at which something is due.
        assert (plane.clock.now - before).total_seconds() == 12 * 3600


def test_settle_comes_back_before_an_operator_has_reacted_unless_it_waits_for_quiet(
    plane: ControlPlane,
) -> None:
    may_act = threading.Event()
    with counting_operator(plane, up_to=3, thinks=0.3, may_act=may_act):
        plane.apply(FIRST)
        plane.settle()
        assert count(plane) == 1
        may_act.set()
        plane.settle(quiet="2s")
        assert count(plane) == 3


@pytest.mark.parametrize(
    ("look", "why"),
    [
        (lambda status: status["nothing"], "KeyError 'nothing'"),
        (lambda status: status["conditions"][9], "IndexError list index out of range"),
        (lambda status: status.get("nothing") > 1, "TypeError '>' not supported"),
    ],
)
def test_a_status_that_is_not_there_yet_is_waited_for(
    plane: ControlPlane, look: object, why: str
) -> None:
    assert callable(look)
    with pytest.raises(AssertionError, match=f"did not hold within 0 s: {why}") as late:
        plane.eventually(lambda: look(plane.get("node/node-1")["status"]), within=0)
    assert 'lambda: look(plane.get("node/node-1")["status"]) did not hold' in str(late.value)


def test_an_assertion_is_waited_for_and_told(plane: ControlPlane) -> None:
    def has_a_hundred() -> None:
        assert count(plane) == 100, "not a hundred"

    with pytest.raises(AssertionError, match="has_a_hundred did not hold within 1 s: not a hund"):
        plane.eventually(has_a_hundred, within="1s")


def test_a_failed_wait_says_what_the_object_waits_for(plane: ControlPlane) -> None:
    plane.apply(pod("nowhere", {"simulation.kcm.dev/outcome": "image-pull-error"}))
    pulls = r"pod/nowhere: .*its container main waits: (ErrImagePull|ImagePullBackOff): "
    with pytest.raises(AssertionError, match=pulls):
        plane.wait_for("pod/nowhere", condition="Ready", within="1m")
    with pytest.raises(AssertionError, match=pulls):
        plane.eventually(lambda: plane.get("pod/nowhere")["status"]["phase"] == "Running", "1s")
