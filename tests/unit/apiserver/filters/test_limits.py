"""How long a request may take."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message

from kcm import errors
from kcm.apiserver.exchange import Exchange
from kcm.apiserver.filters.limits import RequestLimits
from kcm.apiserver.http.limits import InFlight, Limits
from kcm.apiserver.http.responses import Response
from kcm.apiserver.http_errors import RequestTimeout
from kcm.apiserver.request import Request

DONE = Response(b"done")


def serve(query: bytes, *, longest: float, ends: bool) -> Response | None:
    """Passes a request with this query through the filter of a server whose requests may take
    `longest` seconds. Its handler ends at once, or never.
    """

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        raise AssertionError("nothing is answered here")

    async def handle(exchange: Exchange) -> Response:
        if not ends:
            await asyncio.Event().wait()
        return DONE

    async def run() -> Response | None:
        exchange = Exchange(Request("GET", "/version", query, {}), {}, receive, send)
        limits = RequestLimits(Limits(request_timeout=longest), InFlight(1))
        with exchange.until_sent:
            return await limits.serve(exchange, handle)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("query", "longest"),
    [
        (b"timeout=1ms", 3600.0),
        (b"timeout=1ms", 0.0),  # no limit of the server's
        (b"timeout=3m", 0.001),
        (b"timeout=0s", 0.001),
        (b"timeout=-5s", 0.001),
        (b"timeout=", 0.001),
        (b"", 0.001),
    ],
)
def test_a_request_ends_when_its_client_or_the_server_says(query: bytes, longest: float) -> None:
    with pytest.raises(RequestTimeout):
        serve(query, longest=longest, ends=False)


@pytest.mark.parametrize("query", [b"timeout=10m", b"timeout=0", b"timeout=1h&timeout=x", b""])
def test_a_request_in_time_is_answered(query: bytes) -> None:
    assert serve(query, longest=60.0, ends=True) is DONE


@pytest.mark.parametrize("text", ["invalid", "5", "1y", "s"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(errors.BadRequest) as refused:
        serve(f"timeout={text}".encode(), longest=60.0, ends=True)
    assert str(refused.value) == (
        f'invalid timeout specified in the request URL - time: invalid duration "{text}"'
    )
