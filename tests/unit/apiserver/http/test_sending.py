from __future__ import annotations

import asyncio
import gzip
from typing import Any

import pytest

from kcm.apiserver.http.responses import Response
from kcm.apiserver.http.sending import (
    GZIP_FROM,
    MOST_INDENTED,
    PIECE,
    cut,
    present,
    send_response,
)
from kcm.apiserver.request import Request


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
    pieces = list(cut([large]))
    assert len(pieces) == 3
    assert all(isinstance(piece, memoryview) and piece.obj is large for piece in pieces)


def ask(query: str = "", agent: str = "kubectl/v1.36.2", encoding: str = "") -> Request:
    headers = {b"user-agent": agent.encode(), b"accept-encoding": encoding.encode()}
    return Request("GET", "/api/v1", query.encode(), headers)


@pytest.mark.parametrize(
    ("query", "agent", "indented"),
    [
        ("", "kubectl/v1.36.2", False),
        ("", "curl/8.5.0", True),
        ("", "Wget/1.21", True),
        ("", "Mozilla/5.0 (X11; Linux x86_64)", True),
        ("pretty=true", "kubectl/v1.36.2", True),
        ("pretty=1", "", True),
        ("pretty=false", "curl/8.5.0", False),
        ("pretty=perhaps", "curl/8.5.0", False),
        ("pretty", "curl/8.5.0", True),
        ("pretty=", "kubectl/v1.36.2", False),
        ("&".join(["pretty"] * 101), "kubectl/v1.36.2", False),
    ],
)
def test_people_get_json_that_is_indented(query: str, agent: str, indented: bool) -> None:
    response = present(Response(b'{"a":[1,{}],"b":"\xc3\xa9"}'), ask(query, agent))
    compact, lines = '{"a":[1,{}],"b":"é"}', '{\n  "a": [\n    1,\n    {}\n  ],\n  "b": "é"\n}'
    assert response.body.decode() == (lines if indented else compact)


def test_only_json_of_a_size_that_somebody_reads_is_indented() -> None:
    long = b'["' + b"a" * MOST_INDENTED + b'"]'
    assert present(Response(long), ask("pretty=1")).body == long
    text = Response(b"[1]", content_type="text/plain")
    assert present(text, ask("pretty=1")) == text


def test_what_is_indented_is_compressed_as_well() -> None:
    body = b'["' + b"a" * GZIP_FROM + b'"]'
    response = present(Response(body), ask("pretty=1", encoding="gzip"))
    assert response.headers["content-encoding"] == "gzip"
    assert gzip.decompress(response.body) == b'[\n  "' + b"a" * GZIP_FROM + b'"\n]'
