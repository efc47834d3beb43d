"""Logs of containers whose runtime leaves their rotation to the kubelet."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from kcm import errors
from kcm.kubelet import cri
from kcm.kubelet.containers.log_rotation import LogLimits, LogRotator, list_rotated
from kcm.testing.clock import FakeClock

AT = datetime(2026, 1, 1, tzinfo=UTC)
RUNNING, EXITED = cri.RuntimeContainerState.RUNNING, cri.RuntimeContainerState.EXITED


class Containers:
    """The part of a runtime that rotation uses: containers by id, with their states and logs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.states = {"c1": RUNNING}
        self.refuses: set[str] = set()
        self.reopened: list[str] = []

    def list_containers(self) -> list[cri.RuntimeContainer]:
        return [
            cri.RuntimeContainer(id_, "s", id_, 0, "", state, AT)
            for id_, state in self.states.items()
        ]

    def container_status(self, container_id: str) -> cri.RuntimeContainerStatus:
        if container_id not in self.states:
            raise errors.ContainerNotFound()
        config = cri.ContainerConfig(container_id)
        log = str(self.folder / container_id / "0.log")
        return cri.RuntimeContainerStatus(container_id, config, RUNNING, AT, log_path=log)

    def reopen(self, container_id: str) -> None:
        if container_id in self.refuses:
            raise errors.ContainerRuntimeError("not now")
        self.reopened.append(container_id)
        self.write(container_id, "")

    def write(self, container_id: str, text: str) -> Path:
        log = self.folder / container_id / "0.log"
        log.parent.mkdir(exist_ok=True)
        log.write_text(text)
        return log


def rotator(containers: Containers, clock: FakeClock, files: int = 3) -> LogRotator:
    return LogRotator(
        containers,  # type: ignore[arg-type] # no more of a runtime is needed
        containers.reopen,
        LogLimits(10, files),
        clock,
    )


def test_a_log_that_is_too_large_is_put_aside_and_a_new_one_opened(tmp_path: Path) -> None:
    containers, clock = Containers(tmp_path), FakeClock()
    log = containers.write("c1", "x" * 9)
    rotation = rotator(containers, clock)
    rotation.rotate_all()
    assert containers.reopened == []
    log.write_text("y" * 10)
    rotation.rotate_all()
    assert containers.reopened == ["c1"]
    (old,) = list_rotated(log)
    assert (old.read_text(), log.read_text()) == ("y" * 10, "")


def test_only_so_many_files_are_kept_the_oldest_go(tmp_path: Path) -> None:
    containers, clock = Containers(tmp_path), FakeClock()
    rotation = rotator(containers, clock)
    for number in range(5):
        log = containers.write("c1", f"{number}" * 10)
        rotation.rotate_all()
        clock.step(1)
    assert [path.read_text()[0] for path in list_rotated(log)] == ["3", "4"]
    assert log.exists()


def test_two_rotations_in_one_second_lose_nothing(tmp_path: Path) -> None:
    containers, clock = Containers(tmp_path), FakeClock()
    rotation = rotator(containers, clock)
    for text in ("a" * 10, "b" * 10):
        log = containers.write("c1", text)
        rotation.rotate_all()
    assert [path.read_text()[0] for path in list_rotated(log)] == ["a"]
    assert log.read_text()[0] == "b"


def test_a_log_that_is_not_opened_anew_keeps_its_name_and_holds_up_no_other(
    tmp_path: Path,
) -> None:
    containers, clock = Containers(tmp_path), FakeClock()
    containers.states = {"c1": RUNNING, "c2": RUNNING, "c3": EXITED, "c4": RUNNING}
    containers.refuses = {"c1"}
    logs = {name: containers.write(name, "x" * 10) for name in ("c1", "c2", "c3")}
    rotator(containers, clock).rotate_all()
    assert logs["c1"].read_text() == "x" * 10
    assert containers.reopened == ["c2"]
    assert list_rotated(logs["c3"]) == []
