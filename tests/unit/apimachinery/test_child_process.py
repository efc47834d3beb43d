"""Child processes that answer requests. This module is the program of one, too."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from kcm.apimachinery.child_process import (
    ChildEndedError,
    ChildProcess,
    answer_requests,
    limit_memory,
)
from kcm.testing.waiting import until

IDLE = "KCM_TEST_IDLE"  # seconds


@pytest.fixture
def child() -> Iterator[ChildProcess]:
    made = ChildProcess(__name__, "hello")
    yield made
    made.close()


def test_a_child_answers_and_knows_its_greeting(child: ChildProcess) -> None:
    assert child.ask("greeting") == "hello"
    pid = child.ask("pid")
    assert pid == child.ask("pid") != os.getpid()


def test_one_that_ends_before_it_answers_is_replaced(child: ChildProcess) -> None:
    pid = child.ask("pid")
    for request in ("exit", "kill", "memory"):
        with pytest.raises(ChildEndedError):
            child.ask(request)
    assert child.ask("pid") != pid


def test_what_it_prints_is_no_answer(
    child: ChildProcess, capfd: pytest.CaptureFixture[str]
) -> None:
    assert child.ask("print") == "printed"
    until(lambda: "a remark" in capfd.readouterr().err, "what it printed")


def test_one_that_ended_for_want_of_requests_is_replaced(
    child: ChildProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(IDLE, "0.1")
    pid = child.ask("pid")
    until(lambda: has_ended(pid), "the end of the child")
    assert child.ask("pid") != pid


def has_ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _prepare(greeting: str) -> Callable[[str], Any]:
    limit_memory(64 * 1024**2)

    def answer(request: str) -> Any:
        match request:
            case "greeting":
                return greeting
            case "pid":
                return os.getpid()
            case "print":
                print("a remark", flush=True)  # noqa: T201 - as a library may
                return "printed"
            case "exit":
                sys.exit(3)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "memory":
                return bytes(128 * 1024**2)
        return request

    return answer


if __name__ == "__main__":
    answer_requests(_prepare, idle=float(os.environ.get(IDLE, "30")))
