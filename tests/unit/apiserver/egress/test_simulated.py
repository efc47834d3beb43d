"""Logs of simulated containers, as they are sent."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import cast

import pytest

from kcm.apiserver.egress.simulated import SimulatedContainer, SimulatedLog
from kcm.kubelet.server.logs import LogOptions
from kcm.testing.waiting import yield_to_loop

AT = datetime(2026, 1, 1, tzinfo=UTC)
NOBODY = cast("SimulatedContainer", None)  # a log that is not followed asks nothing of it


def read(lines: int, text: str, limit: int | None = None) -> tuple[list[bytes], int]:
    """Returns the pieces of a log, and how many turns other tasks got meanwhile."""
    options = LogOptions(limit_bytes=limit)
    log = SimulatedLog(NOBODY, options, None, [(AT, text)] * lines, AT)

    async def run() -> tuple[list[bytes], int]:
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await yield_to_loop()

        beside = asyncio.ensure_future(others())
        pieces = [piece async for piece in log.pieces()]
        beside.cancel()
        return pieces, turns

    return asyncio.run(run())


def test_many_short_lines_are_sent_together_and_let_others_in() -> None:
    pieces, turns = read(10_000, "x" * 60)
    assert b"".join(pieces) == (b"x" * 60 + b"\n") * 10_000
    assert len(pieces) == 10  # of 64 KiB
    assert turns >= 10


def test_a_long_line_is_sent_alone() -> None:
    pieces, _ = read(3, "x" * 100_000)
    assert [len(piece) for piece in pieces] == [100_001] * 3


@pytest.mark.parametrize("limit", [1, 61, 65_600, 100_000])
def test_no_more_is_sent_than_was_asked_for(limit: int) -> None:
    pieces, _ = read(10_000, "x" * 60, limit)
    assert sum(map(len, pieces)) == limit
