from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kcm.simulation.scripting import scripts
from kcm.simulation.scripting.incidents import Exit, format_exit, parse_exit, parse_readiness

AT = datetime(2026, 1, 1, 0, 0, 5, 250_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("code", "reason", "parsed"),
    [
        (0, "", Exit(AT.timestamp(), 0, "Completed")),
        (3, "", Exit(AT.timestamp(), 3, "Error")),
        (137, "OOMKilled", Exit(AT.timestamp(), 137, "OOMKilled")),
    ],
)
def test_an_exit_is_read_as_it_was_written(code: int, reason: str, parsed: Exit) -> None:
    assert parse_exit(format_exit(AT, code, reason)) == parsed


@pytest.mark.parametrize(
    "text", ["", "137", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z 256", "now 1", "soon 1 A B"]
)
def test_an_exit_that_cannot_be_understood_is_reported(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        parse_exit(text)
    _, faults = scripts.of_pod({f"{scripts.PREFIX}exit": text}, scripts.NO_SCRIPT)
    assert [fault.annotation for fault in faults] == [f"{scripts.PREFIX}exit"]


def test_readiness_is_a_word() -> None:
    assert (parse_readiness("true"), parse_readiness("false")) == (True, False)
    with pytest.raises(ValueError, match='must be true or false, not "yes"'):
        parse_readiness("yes")
