"""The content of audit lines, and what they leave out."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from starlette.types import Message
from structlog.testing import capture_logs

from kcm.apiserver.audit import NAME, AuditLog
from kcm.apiserver.auth.attributes import Attributes, User
from kcm.apiserver.exchange import Exchange
from kcm.apiserver.request import Request

JANE = User("jane", groups=("dev", "system:authenticated"))
CREATE = Attributes("create", version="v1", resource="pods", namespace="a")
PATH = "/api/v1/namespaces/a/pods"


@pytest.fixture(autouse=True)
def audit_is_enabled() -> Iterator[None]:
    logger = logging.getLogger(NAME)
    before = logger.level
    logger.setLevel(logging.INFO)
    yield
    logger.setLevel(before)


def build_exchange(path: str = PATH, agent: bytes = b"kubectl/v1.33", **facts: Any) -> Exchange:
    headers = {b"user-agent": agent, b"authorization": b"Bearer secret"}
    request = Request("POST", path, b"token=secret", headers, b'{"data":"secret"}')
    exchange = Exchange(request, {}, receive, send, sender=JANE, user=JANE, asked=CREATE)
    return replace(exchange, **facts)


async def receive() -> Message:
    raise AssertionError("a line needs no body")


async def send(message: Message) -> None:
    raise AssertionError("a line answers nothing")


def write_line(exchange: Exchange, code: int = 201) -> str:
    stream = io.StringIO()
    AuditLog(stream).log_write(exchange, "POST", code, 0.123456)
    return stream.getvalue()


def test_a_line_says_who_wrote_what_with_which_result() -> None:
    line = json.loads(write_line(build_exchange()))
    datetime.fromisoformat(line.pop("timestamp"))
    assert line == {
        "event": "write",
        "level": "info",
        "logger": NAME,
        "user": "jane",
        "groups": ["dev", "system:authenticated"],
        "verb": "POST",
        "resource": "pods",
        "path": PATH,
        "agent": "kubectl/v1.33",
        "code": 201,
        "seconds": 0.1235,
    }


def test_it_says_on_whose_behalf_a_user_acted() -> None:
    line = json.loads(write_line(build_exchange(sender=User("admin"))))
    assert (line["user"], line["impersonated"]) == ("admin", "jane")


def test_a_request_of_nobody_about_nothing_has_a_line_too() -> None:
    line = json.loads(write_line(build_exchange(sender=None, user=User("nobody"), asked=None), 401))
    assert (line["user"], line["resource"], line["code"]) == ("nobody", "", 401)
    assert "impersonated" not in line


def test_bodies_queries_and_other_headers_are_left_out() -> None:
    assert "secret" not in write_line(build_exchange())


def test_what_clients_send_can_neither_begin_a_line_nor_make_it_long() -> None:
    text = write_line(build_exchange(path='/a\n{"}é' * 1000, agent=b'\n\x1b[31m"\xff' * 1000))
    assert text.count("\n") == 1
    assert text.endswith("}\n")
    assert text.isascii()
    assert "\x1b" not in text
    line = json.loads(text)
    assert (len(line["path"]), len(line["agent"])) == (500, 100)


def test_nothing_is_written_while_the_logger_is_silent() -> None:
    logging.getLogger(NAME).setLevel(logging.WARNING)
    assert write_line(build_exchange()) == ""


class FullDisk(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


def test_a_stream_that_cannot_be_written_to_fails_no_request() -> None:
    with capture_logs() as shown:
        AuditLog(FullDisk()).log_write(build_exchange(), "POST", 201, 0.1)
    assert [line["error"] for line in shown] == ["[Errno 28] No space left on device"]
