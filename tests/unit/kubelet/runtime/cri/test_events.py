"""Events of a runtime: a stream that breaks, hangs, repeats or lies only says when to look."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import structlog

from kcm.kubelet.runtime.cri.events import UNIMPLEMENTED_PERIOD, ContainerEvents
from kcm.testing.waiting import until
from tests.unit.kubelet.runtime.cri.fake_server import Answer, serve

LABELS = {"owner": "me"}
METADATA = {"name": "web", "namespace": "shop", "uid": "u1"}


def build_event(kind: str = "CONTAINER_STOPPED_EVENT", owner: str = "me") -> dict[str, Any]:
    status = {"id": "s1", "metadata": METADATA, "labels": {"owner": owner, "app": "web"}}
    return {"container_id": "c1", "container_event_type": kind, "pod_sandbox_status": status}


class Pauses:
    """A clock that notes each wait, and lets the wait end at once."""

    def __init__(self, most: int) -> None:
        self.seconds: list[float] = []
        self._most = most

    def wait(self, event: threading.Event, timeout: float) -> bool:
        self.seconds.append(timeout)
        if len(self.seconds) >= self._most:
            event.set()
        return event.is_set()


def follow(folder: Path, answer: Answer | None, streams: int) -> tuple[int, list[float]]:
    """Follows so many streams; returns the number of reports, and the pauses after each stream."""
    reports: list[None] = []
    clock = Pauses(streams)
    with serve(folder, {"GetContainerEvents": answer} if answer else {}) as channel:
        events = ContainerEvents(channel, LABELS, clock)  # type: ignore[arg-type] # it only waits
        events.run(threading.Event(), lambda: reports.append(None))
    return len(reports), clock.seconds


def test_each_event_of_a_pod_of_its_own_is_reported(tmp_path: Path) -> None:
    def answer(*_: object) -> Iterator[dict[str, Any]]:
        yield build_event()
        yield build_event()  # again
        yield build_event(owner="another kubelet")
        yield {"container_id": "c9", "container_event_type": "CONTAINER_DELETED_EVENT"}
        yield {**build_event(), "container_event_type": 77}
        yield build_event("CONTAINER_STARTED_EVENT")

    assert follow(tmp_path, answer, 1) == (5, [1.0])


def test_a_stream_that_breaks_is_opened_again_and_said_once(tmp_path: Path) -> None:
    def answer(_: object, context: grpc.ServicerContext) -> Iterator[dict[str, Any]]:
        yield build_event(owner="another kubelet")
        context.abort(grpc.StatusCode.INTERNAL, "event queue is full")

    def answer_nothing(_: object, context: grpc.ServicerContext) -> Iterator[dict[str, Any]]:
        context.abort(grpc.StatusCode.INTERNAL, "event queue is full")
        yield {}

    with structlog.testing.capture_logs() as logs:
        assert follow(tmp_path, answer, 3) == (0, [1.0, 1.0, 1.0])
    assert len(logs) == 3  # it had worked in between
    with structlog.testing.capture_logs() as logs:
        assert follow(tmp_path, answer_nothing, 3) == (0, [1.0, 1.0, 1.0])
    assert [each["error"] for each in logs] == [
        "rpc error: code = Internal desc = event queue is full"
    ]


def test_a_runtime_without_events_is_asked_once_a_minute(tmp_path: Path) -> None:
    with structlog.testing.capture_logs() as logs:
        assert follow(tmp_path, None, 2) == (0, [UNIMPLEMENTED_PERIOD] * 2)
    assert [each["log_level"] for each in logs] == ["info"]


def test_a_message_that_is_none_ends_the_stream_only(tmp_path: Path) -> None:
    def answer(*_: object) -> Iterator[dict[str, Any]]:
        yield build_event()
        raise OSError("the server's own")

    assert follow(tmp_path, answer, 2) == (2, [1.0, 1.0])


def test_a_stream_that_hangs_is_left_when_the_kubelet_stops(tmp_path: Path) -> None:
    over, reports = threading.Event(), list[None]()

    def answer(*_: object) -> Iterator[dict[str, Any]]:
        yield build_event()
        over.wait(20)

    with (
        serve(tmp_path, {"GetContainerEvents": answer}) as channel,
        ThreadPoolExecutor(1) as pool,
    ):
        events = ContainerEvents(channel, LABELS, Pauses(1))  # type: ignore[arg-type] # as above
        run = pool.submit(events.run, threading.Event(), lambda: reports.append(None))
        until(lambda: reports, "the first event")
        assert not run.done()
        events.close()
        run.result(20)
        events.run(threading.Event(), lambda: reports.append(None))  # none is opened any more
        over.set()
    assert len(reports) == 1
