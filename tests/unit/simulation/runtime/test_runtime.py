"""The simulated runtime, through the interface that the kubelet uses."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.kubelet.cri import ContainerConfig, PortMapping, SandboxConfig, StreamOptions
from kcm.simulation.runtime import logs
from kcm.simulation.runtime.runtime import SimulatedRuntime
from kcm.simulation.scripting.behaviour import Pace
from kcm.simulation.scripting.scripts import PREFIX
from kcm.testing.clock import FakeClock
from tests.unit.kubelet.views import pod

OUTPUT = StreamOptions(stdout=True, stderr=True)
PACE = Pace(start_after=1.0, start_jitter=0.0, run_for=2.0, stop_after=1.0)


class World:
    """A simulated runtime with a clock that moves when something waits."""

    def __init__(self, logs: Path) -> None:
        self.clock = FakeClock()
        self.pods: dict[str, Pod] = {}
        self.runtime = SimulatedRuntime(self.pods.get, self.clock, pace=PACE)
        self.logs = logs

    def add(self, scripts: Mapping[str, str] | None = None, **spec: str) -> Pod:
        notes = {PREFIX + name: text for name, text in (scripts or {}).items()}
        added = pod("main", metadata={"annotations": notes}, **spec)
        self.pods[added.uid] = added
        return added

    def sandbox(self, *ports: PortMapping, **more: Any) -> str:
        config = SandboxConfig(
            "web", "default", next(iter(self.pods), "u"), log_directory=str(self.logs),
            port_mappings=ports, **more,
        )  # fmt: skip
        return self.runtime.run_pod_sandbox(config)

    def container(self, sandbox: str, attempt: int = 0) -> str:
        config = ContainerConfig("main", attempt=attempt, image="x", log_path="main/0.log")
        return self.runtime.create_container(sandbox, config, SandboxConfig("web", "default", "u"))

    def start_container(self, scripts: Mapping[str, str] | None = None, **spec: str) -> str:
        self.add(scripts, **spec)
        container_id = self.container(self.sandbox())
        self.runtime.start_container(container_id)
        return container_id

    def state(self, container: str) -> str:
        return self.runtime.container_status(container).state


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_creating_takes_its_time_the_first_time_only(world: World) -> None:
    world.add({"start-after": "5s"})
    box, began = world.sandbox(), world.clock.monotonic()
    container_id = world.container(box)
    assert world.clock.monotonic() - began == pytest.approx(5, abs=0.1)
    assert world.state(container_id) == "CREATED"
    began = world.clock.monotonic()
    world.container(box, attempt=1)
    assert world.clock.monotonic() == began


def test_creation_is_given_up_when_the_pod_is_deleted(world: World) -> None:
    container_id = world.add({"outcome": "never-start"})
    box = world.sandbox()
    world.pods[container_id.uid] = container_id.with_metadata(deletion_timestamp=world.clock.now())
    with pytest.raises(errors.ContainerRuntimeError, match="canceled"):
        world.container(box)


def test_nobody_waits_for_a_runtime_that_ends(world: World) -> None:
    world.add({"outcome": "never-start"})
    box = world.sandbox()
    world.runtime.close()
    with pytest.raises(errors.ContainerRuntimeError):
        world.container(box)


def test_a_container_ends_by_itself_as_scripted(world: World) -> None:
    container_id = world.start_container({"outcome": "oom", "run-for": "4s", "message": "too much"})
    assert world.state(container_id) == "RUNNING"
    world.clock.step(4)
    status = world.runtime.container_status(container_id)
    assert (status.state, status.exit_code, status.reason, status.message) == (
        "EXITED", 137, "OOMKilled", "too much",
    )  # fmt: skip
    assert [one.state for one in world.runtime.list_containers()] == ["EXITED"]


@pytest.mark.parametrize(
    ("script", "grace", "took", "code"),
    [({}, 30, 1, 0), ({"stop-after": "never"}, 5, 5, 137), ({"stop-after": "9s"}, 0, 0, 137)],
)
def test_stopping_waits_for_the_end(
    world: World, script: dict[str, str], grace: float, took: float, code: int
) -> None:
    container_id = world.start_container(script)
    began = world.clock.monotonic()
    world.runtime.stop_container(container_id, grace)
    assert world.clock.monotonic() - began == pytest.approx(took, abs=0.1)
    assert world.runtime.container_status(container_id).exit_code == code
    world.runtime.stop_container(container_id, grace)  # and once more, which changes nothing


def test_a_stopped_sandbox_has_killed_its_containers_and_given_its_address_back(
    world: World,
) -> None:
    container_id = world.start_container()
    (box,) = world.runtime.list_pod_sandboxes()
    assert box.ip == "10.64.0.1"
    world.runtime.stop_pod_sandbox(box.id)
    assert world.runtime.container_status(container_id).exit_code == 137
    assert [(one.state, one.ip) for one in world.runtime.list_pod_sandboxes()] == [("NOTREADY", "")]
    world.runtime.remove_pod_sandbox(box.id)
    world.runtime.remove_pod_sandbox(box.id)
    assert world.runtime.list_containers() == []
    with pytest.raises(errors.ContainerNotFound):
        world.runtime.container_status(container_id)


def test_host_ports_exclude_each_other(world: World) -> None:
    world.sandbox(PortMapping(80, 8080))
    with pytest.raises(errors.HostPortTaken):
        world.sandbox(PortMapping(81, 8080))


def test_a_pod_in_the_hosts_network_has_the_hosts_address(world: World) -> None:
    world.sandbox(host_network=True)
    assert [box.ip for box in world.runtime.list_pod_sandboxes()] == ["127.0.0.1"]


def test_a_log_is_what_the_script_says_and_goes_with_its_container(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    container_id = world.start_container({"log": "hello\nevery 2s: tick"})

    def lines() -> list[str]:
        log = Path(world.runtime.container_status(container_id).log_path)
        return [line.split(" ", 3)[3] for line in log.read_text().splitlines()]

    begun = ["container main started (simulated), attempt 0", "hello"]
    assert lines() == begun
    world.clock.step(3)
    assert lines() == [*begun, "tick"]
    world.runtime.stop_container(container_id, 0)
    ended = [*begun, "tick", "container main exited with code 137 (Error)"]
    assert lines() == ended
    world.clock.step(60)
    assert lines() == ended
    log = Path(world.runtime.container_status(container_id).log_path)
    monkeypatch.setattr(logs, "MOST_BYTES", 10)
    logs.append(str(log), [(world.clock.now(), "more")])
    assert len([*log.parent.iterdir()]) == 2
    world.runtime.remove_container(container_id)
    assert not [*log.parent.iterdir()]


def test_who_attaches_reads_what_the_script_says_until_the_end(world: World) -> None:
    container_id = world.start_container({"attach": "welcome", "log": "every 1s: tick"})
    with closing(world.runtime.attach(container_id, OUTPUT)) as stream:
        assert stream.stdout is not None
        assert os.read(stream.stdout, 100) == b"welcome\n"
        world.clock.step(1)
        assert os.read(stream.stdout, 100) == b"tick\n"
        world.runtime.stop_container(container_id, 0)
        assert b"exited with code 137" in os.read(stream.stdout, 100)
        assert stream.wait(10) == 137
    with pytest.raises(errors.ContainerRuntimeError, match="does not run"):
        world.runtime.attach(container_id, OUTPUT)


def test_hooks_succeed_and_nothing_else_can_be_run_inside(world: World) -> None:
    container_id = world.start_container()
    assert world.runtime.exec_sync(container_id, ["true"], 0).exit_code == 0
    for call in (
        lambda: world.runtime.exec(container_id, ["sh"], OUTPUT),
        lambda: world.runtime.port_forward("box", 80),
    ):
        with pytest.raises(errors.ContainerRuntimeError, match="nothing runs"):
            call()
    world.runtime.stop_container(container_id, 0)
    with pytest.raises(errors.ContainerRuntimeError):
        world.runtime.exec_sync(container_id, ["true"], 0)


def test_images_are_there_unless_the_script_says_otherwise(world: World) -> None:
    fine, gone = world.add(), world.add({"outcome": "image-pull-error", "message": "no such"})
    assert world.runtime.has_image(fine, fine.spec.containers[0])
    assert world.runtime.pull_image(fine, fine.spec.containers[0]) > 0
    assert not world.runtime.has_image(gone, gone.spec.containers[0])
    with pytest.raises(errors.ImagePullFailed, match="no such"):
        world.runtime.pull_image(gone, gone.spec.containers[0])


def test_figures_are_the_scripts(world: World) -> None:
    container_id = world.start_container({"cpu": "100m for 10s, 1", "memory": "64Mi"})
    world.clock.step(12)
    stats = world.runtime.container_stats(container_id)
    assert stats.cpu_nanoseconds == 3 * 10**9
    assert stats.memory_working_set_bytes == 64 * 2**20


def test_what_nobody_knows_is_refused(world: World) -> None:
    with pytest.raises(errors.SandboxNotFound):
        world.container("nobody")
    box = world.sandbox()
    with pytest.raises(errors.ContainerRuntimeError, match="no pod is known"):
        world.container(box)
