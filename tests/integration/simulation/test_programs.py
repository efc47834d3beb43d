from __future__ import annotations

from typing import Any

from kcm.api.core_v1 import ContainerStatus
from kcm.simulation.programs.outputs import read_output
from tests.integration.simulation.conftest import World


def start(world: World, name: str, script: str, **parts: Any) -> str:
    """Creates a pod with a script, and returns its uid."""
    main = {"name": "main", "image": "busybox", "command": ["sh", "-c", script]}
    return world.pod(name, containers=[main], **parts).uid


def lines(world: World, uid: str, attempt: int = 0) -> list[str] | None:
    output = read_output(world.io, uid, "main", attempt)
    return None if output is None else [text for _, text in output]


def status_of(world: World, name: str) -> ContainerStatus:
    statuses = world.get(name).status.container_statuses
    assert statuses is not None
    return statuses[0]


def ended(world: World, name: str) -> tuple[int, str | None]:
    state = status_of(world, name).state
    assert state is not None
    assert state.terminated is not None
    return state.terminated.exit_code, state.terminated.message


def test_a_program_goes_on_where_it_was_after_a_restart_of_the_simulator(world: World) -> None:
    world.restart(programs=True)
    world.go()
    uid = start(world, "a", "echo one; sleep 20; echo two; exit 4", restartPolicy="Never")
    world.go(5)
    assert lines(world, uid) == ["one"]
    world.restart()
    world.go(10)
    assert (world.list_pods(), lines(world, uid)) == ({"a": "1/1 Running"}, ["one"])
    world.go(10)
    assert (ended(world, "a"), lines(world, uid)) == ((4, None), ["one", "two"])


def test_failed_programs_are_started_again_with_back_off(world: World) -> None:
    world.restart(programs=True)
    world.go()
    uid = start(world, "a", "echo $HOSTNAME; exit 1")
    world.go(5)
    assert world.list_pods() == {"a": "0/1 CrashLoopBackOff"}
    assert (lines(world, uid, 0), lines(world, uid, 1)) == (["a"], ["a"])
    world.go(60)
    assert status_of(world, "a").restart_count >= 3
    assert lines(world, uid, 0) is None  # the outputs of the newest two are kept


def test_outputs_go_with_their_pods(world: World) -> None:
    world.restart(programs=True)
    world.go()
    uid = start(world, "a", "echo one; sleep 1000")
    world.go(3)
    assert lines(world, uid) == ["one"]
    world.delete("a")
    world.go(3)
    assert (world.list_pods(), lines(world, uid)) == ({}, None)


def test_a_program_that_ignores_nothing_ends_with_its_pod(world: World) -> None:
    world.restart(programs=True)
    world.go()
    start(world, "a", "trap exit TERM; while true; do sleep 1; done")
    world.go(30)
    assert world.list_pods() == {"a": "1/1 Running"}
    world.delete("a")
    world.go(3)
    assert world.list_pods() == {}


def test_without_the_option_nothing_is_written(world: World) -> None:
    world.go()
    uid = start(world, "a", "echo one")
    world.go(3)
    assert (world.list_pods(), lines(world, uid)) == ({"a": "1/1 Running"}, None)
