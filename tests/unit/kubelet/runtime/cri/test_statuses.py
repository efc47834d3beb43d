"""What a runtime that speaks CRI v1 says of containers."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kcm.kubelet import cri
from kcm.kubelet.runtime.cri.messages import calls
from kcm.kubelet.runtime.cri.statuses import convert_container, convert_stats, convert_status

SECOND = 1_000_000_000
NOTHING = cri.Resources()


def status(**fields: object) -> cri.RuntimeContainerStatus:
    response = calls()["ContainerStatus"].response(
        status={"id": "c1", "metadata": {"name": "main", "attempt": 2}, **fields}
    )
    return convert_status(response.status, NOTHING)


def test_a_container_that_has_ended_says_how() -> None:
    ended = status(
        state="CONTAINER_EXITED", exit_code=137, reason="OOMKilled", message="m",
        created_at=SECOND, started_at=2 * SECOND, finished_at=3 * SECOND,
        image={"image": "sha256:1", "user_specified_image": "app:1"}, image_ref="sha256:1",
        log_path="/logs/main/2.log",
        mounts=[{"host_path": "/a", "container_path": "/b", "readonly": True}],
    )  # fmt: skip
    assert (ended.state, ended.exit_code) == (cri.RuntimeContainerState.EXITED, 137)
    assert (ended.reason, ended.message) == ("OOMKilled", "m")
    assert ended.finished_at == datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC)
    assert (ended.config.name, ended.config.attempt, ended.config.image) == ("main", 2, "app:1")
    assert (ended.image_id, ended.log_path) == ("sha256:1", "/logs/main/2.log")
    assert ended.config.mounts == [cri.Mount("/a", "/b", True)]


def test_a_container_that_has_not_ended_has_no_end() -> None:
    created = status(state="CONTAINER_CREATED", created_at=SECOND)
    assert (created.started_at, created.finished_at) == (None, None)
    running = status(state="CONTAINER_RUNNING", started_at=SECOND, exit_code=1, finished_at=5)
    assert (running.state, running.finished_at, running.exit_code) == (
        cri.RuntimeContainerState.RUNNING, None, 0,
    )  # fmt: skip


CANCELLED = "failed to create containerd task: failed to create shim task: context canceled"


@pytest.mark.parametrize(
    ("message", "fields", "state"),
    [
        (CANCELLED, {}, "CREATED"),
        (f"{CANCELLED}: unknown", {}, "CREATED"),  # with the code of gRPC
        (CANCELLED, {"started_at": 5}, "EXITED"),
        (CANCELLED, {"reason": "Error"}, "EXITED"),
        ("failed to start containerd task: context canceled", {}, "EXITED"),  # it may have run
        ("failed to create containerd task: OCI runtime create failed: no file", {}, "EXITED"),
    ],
)
def test_a_container_whose_start_was_cancelled_has_not_ended(
    message: str, fields: dict[str, object], state: str
) -> None:
    end: dict[str, object] = {
        "state": "CONTAINER_EXITED",
        "exit_code": 128,
        "reason": "StartError",
        "message": message,
    }
    assert status(**end | fields).state.name == state


def test_a_state_that_nobody_knows_is_unknown() -> None:
    response = calls()["ListContainers"].response(containers=[{"id": "c1", "state": 77}])
    (listed,) = response.containers
    assert convert_container(listed).state is cri.RuntimeContainerState.UNKNOWN
    assert status(state="CONTAINER_UNKNOWN").state is cri.RuntimeContainerState.UNKNOWN


def test_figures_have_their_time() -> None:
    response = calls()["ContainerStats"].response(
        stats={
            "attributes": {"id": "c1"},
            "cpu": {"timestamp": SECOND, "usage_core_nano_seconds": {"value": 5}},
            "memory": {"working_set_bytes": {"value": 6}, "usage_bytes": {"value": 7}},
        }
    )
    stats = convert_stats(response.stats)
    assert (stats.id, stats.cpu_nanoseconds) == ("c1", 5)
    assert (stats.memory_working_set_bytes, stats.memory_usage_bytes) == (6, 7)
    assert stats.at == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
