from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kcm.apiserver.http.responses import Response
from kcm.apiserver.http.sending import PIECE, cut, send_response


def warnings_of(*texts: str) -> list[str]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(send_response(Response(b"{}", warnings=list(texts)), "GET", send))
    headers = [value.decode() for name, value in sent[0]["headers"] if name == b"warning"]
    return [header.removeprefix('299 - "').removesuffix('"') for header in headers]


# after TestWarning in staging/src/k8s.io/apiserver/pkg/endpoints/filters/warning_test.go
@pytest.mark.parametrize(
    ("texts", "sent"),
    [
        ([""], []),
        (["a", "b", "a"], ["a", "b"]),
        (["x" * 4096], ["x" * 4096]),
        (["x" * 5000], ["x" * 256]),
        (["x" * 4000, "y" * 1000], ["x" * 256, "y" * 256]),
        (["x" * 300, "x" * 301, "y" * 4000], ["x" * 256, "y" * 256]),
    ],
)
def test_warnings_fit_into_a_head(texts: list[str], sent: list[str]) -> None:
    assert warnings_of(*texts) == sent


def test_many_warnings_end_at_the_limit() -> None:
    assert len(warnings_of(*(f"{number:0256}" for number in range(100)))) == 16


@pytest.mark.parametrize(
    ("sizes", "pieces"),
    [
        ([], []),
        ([0], []),
        ([1, 2], [3]),
        ([1, PIECE, 2], [1, PIECE, 2]),
        ([PIECE * 2 + 1, 5], [PIECE, PIECE, 1, 5]),
        ([PIECE - 1, PIECE - 1, 1], [2 * PIECE - 2, 1]),
    ],
)
def test_parts_are_sent_in_pieces_of_a_bounded_size(sizes: list[int], pieces: list[int]) -> None:
    parts = [bytes([number]) * size for number, size in enumerate(sizes)]
    sent = list(cut(parts))
    assert [len(piece) for piece in sent] == pieces
    assert b"".join(sent) == b"".join(parts)


def test_a_large_part_is_not_copied() -> None:
    large = bytes(PIECE * 3)
    assert all(isinstance(piece, memoryview) and piece.obj is large for piece in cut([large]))
