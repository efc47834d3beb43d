"""Tests how the commands of many greenlets are put on one connection."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

import pytest

from kcm.redisio.pipelining import _Link
from kcm.redisio.quick import LinkError


class RecordingTransport:
    """A connection that keeps what is written to it."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def is_closing(self) -> bool:
        return False


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


def open_link() -> tuple[_Link, RecordingTransport]:
    link, transport = _Link(timeout=30.0), RecordingTransport()
    link.connection_made(cast("asyncio.BaseTransport", transport))
    return link, transport


def test_a_call_that_is_alone_is_sent_at_once() -> None:
    async def main() -> None:
        link, transport = open_link()
        reply = link.send(b"a", 1)
        assert transport.written == [b"a"]
        link.data_received(b":1\r\n")
        assert await reply == [1]
        link.send(b"b", 1)
        assert transport.written == [b"a", b"b"]
        link.connection_lost(None)

    run(main())


def test_calls_that_come_while_others_wait_are_sent_together_by_the_end_of_the_turn() -> None:
    async def main() -> None:
        link, transport = open_link()
        replies = [link.send(part, 1) for part in (b"a", b"b", b"c")]
        assert transport.written == [b"a"]
        await asyncio.sleep(0)
        assert transport.written == [b"a", b"bc"]
        link.data_received(b":1\r\n:2\r\n:3\r\n")
        assert [await reply for reply in replies] == [[1], [2], [3]]
        link.connection_lost(None)

    run(main())


def test_calls_that_were_not_sent_before_the_connection_was_lost_fail() -> None:
    async def main() -> None:
        link, transport = open_link()
        replies = [link.send(part, 1) for part in (b"a", b"b")]
        link.connection_lost(None)
        await asyncio.sleep(0)
        assert transport.written == [b"a"]
        for reply in replies:
            with pytest.raises(LinkError):
                await reply

    run(main())
