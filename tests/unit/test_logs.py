"""Logs: what a line shows, and what it must not."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import structlog
from kcm import logs
logs.configure({log_format!r}, "info")
log = structlog.get_logger("kcm.test")
log.debug("unseen")
try:
    password = "swordfish"
    raise ValueError("wrong")
except ValueError:
    log.exception("It failed", key="default/web")
"""


def run_program(log_format: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(log_format=log_format)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ended.stdout == ""
    return ended.stderr


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_a_traceback_shows_no_values(log_format: str) -> None:
    # The source line that assigns it is not in the traceback; the value could only come
    # from the variables.
    text = run_program(log_format)
    assert "swordfish" not in text
    assert "ValueError" in text
    assert "default/web" in text
    assert "unseen" not in text


def test_json_is_one_object_a_line() -> None:
    (line,) = run_program("json").splitlines()
    body = json.loads(line)
    assert (body["event"], body["level"], body["logger"]) == ("It failed", "error", "kcm.test")
