"""The states of pods."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kcm.api.core_v1 import (
    Container,
    ContainerPort,
    ContainerStatus,
    EphemeralContainer,
    PodCondition,
    ServicePort,
)
from kcm.helpers.pods import (
    available_in,
    is_active,
    is_ready,
    is_terminal,
    is_terminating,
    list_containers,
    most_restarts,
    port_of,
    ready_since,
    with_condition,
)
from kcm.testing import builders
from kcm.testing.builders import START, condition, pod


@pytest.mark.parametrize(
    ("phase", "deleted", "expected"),
    [
        ("Pending", False, (True, False, False)),
        ("Running", False, (True, False, False)),
        ("Unknown", False, (True, False, False)),
        ("Succeeded", False, (False, True, False)),
        ("Failed", False, (False, True, False)),
        ("Running", True, (False, False, True)),
        ("Failed", True, (False, True, False)),
    ],
)
def test_a_pod_is_active_terminal_or_terminating(
    phase: str, deleted: bool, expected: tuple[bool, bool, bool]
) -> None:
    obj = pod(phase=phase, deleting=START if deleted else None)
    assert (is_active(obj), is_terminal(obj), is_terminating(obj)) == expected


def test_all_containers_are_those_of_every_kind() -> None:
    names = ["main", "init", "debug"]
    main, init = (Container(name=name, image="i") for name in names[:2])
    debug = EphemeralContainer(name="debug", image="i")
    whole = pod(containers=[main], init_containers=[init], ephemeral_containers=[debug])
    assert [one.name for one in list_containers(whole.spec)] == names
    assert [one.name for one in list_containers(pod(containers=[main]).spec)] == names[:1]


@pytest.mark.parametrize("ready", [True, False, None])
def test_a_pod_is_ready_when_its_condition_says_so(ready: bool | None) -> None:
    obj = pod(ready=ready)
    assert is_ready(obj) is (ready is True)
    assert ready_since(obj) == (START if ready else None)


@pytest.mark.parametrize(
    ("seconds", "after", "expected"),
    [(0, 0, 0.0), (30, 0, 30.0), (30, 29.5, 0.5), (30, 30, 0.001), (30, 30.5, 0.0)],
)
def test_a_ready_pod_becomes_available_when_the_time_has_passed(
    seconds: int, after: float, expected: float
) -> None:
    now = START + timedelta(seconds=after)
    assert available_in(pod(ready=True), seconds, now) == pytest.approx(expected)


def test_a_pod_that_is_not_ready_never_becomes_available_by_time() -> None:
    assert available_in(pod(ready=False), 30, START) is None
    assert available_in(pod(ready=True, ready_since=None), 30, START) is None


@pytest.mark.parametrize(("word", "moved"), [("True", False), ("False", True)])
def test_a_condition_keeps_its_time_while_its_word_is_the_same(word: str, moved: bool) -> None:
    before = pod(status={"conditions": [condition("A"), condition("B")]})
    before = before.with_metadata(generation=7)
    now = START + timedelta(hours=1)
    after = with_condition(before, PodCondition(type="A", status=word, reason="new"), now)
    other, changed = after.status.conditions or []
    assert (other.observed_generation, changed.observed_generation) == (None, 7)
    assert other.type == "B"
    assert (changed.status, changed.reason) == (word, "new")
    assert changed.last_transition_time == (now if moved else START)


def test_restarts_of_main_containers_and_sidecars_are_counted_apart() -> None:
    def status(name: str, restarts: int) -> ContainerStatus:
        return ContainerStatus(name=name, restart_count=restarts)

    made = builders.pod("a")
    inits = [
        Container(name="side", image="i", restart_policy="Always"),
        Container(name="init", image="i"),
    ]
    made = made.with_spec(made.spec.replace(init_containers=inits))
    made = made.with_status(
        made.status.replace(
            container_statuses=[status("main", 2), status("more", 5)],
            init_container_statuses=[status("side", 3), status("init", 9)],
        )
    )
    assert most_restarts(made) == (5, 3)
    assert most_restarts(builders.pod("b")) == (0, 0)


# --- The pods behind Services: their ports.


def build_listening_container(name: str, number: int, **fields: Any) -> Container:
    port = ContainerPort(name="web", container_port=number, protocol=fields.pop("protocol", None))
    return Container(name=name, image=name, ports=[port], **fields)


SIDECAR = build_listening_container("sidecar", 3, restart_policy="Always")


@pytest.mark.parametrize(
    ("target", "containers", "init", "expected"),
    [
        (80, [], [], 80),
        (None, [], [], 8080),  # none: the port of the service
        ("web", [], [], None),
        ("web", [build_listening_container("a", 1), build_listening_container("b", 2)], [], 1),
        (
            "web",
            [build_listening_container("a", 1, protocol="UDP"), build_listening_container("b", 2)],
            [],
            2,
        ),
        ("web", [], [build_listening_container("init", 4)], None),
        ("web", [], [build_listening_container("init", 4), SIDECAR], 3),
        ("web", [build_listening_container("a", 1)], [SIDECAR], 1),
    ],
)
def test_a_named_port_is_looked_for_in_containers_and_then_in_sidecars(
    target: int | str | None,
    containers: list[Container],
    init: list[Container],
    expected: int | None,
) -> None:
    """TestFindPort of pkg/api/v1/pod, with the sidecars of 1.32."""
    new_pod = pod("p", containers=containers, init_containers=init)
    assert port_of(new_pod, ServicePort(port=8080, target_port=target)) == expected
