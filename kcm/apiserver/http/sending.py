"""Sends responses over ASGI.

Source of `is_for_people`: isPrettyPrint in
staging/src/k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go, Kubernetes 1.36.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import yaml
from pydantic_core import from_json, to_json
from starlette.types import Send

from kcm import errors
from kcm.apiserver.http.responses import (
    JSON,
    Response,
    prefers_yaml,
)
from kcm.apiserver.request import TRUE, Request
from kcm.redisio import greenlets

try:
    from yaml import CSafeDumper as _Dumper
except ImportError:  # PyYAML was built without libyaml: slower, with the same text
    from yaml import SafeDumper as _Dumper  # type: ignore[assignment]

GZIP_FROM = 128 * 1024  # bytes, as upstream
_GZIP_LEVEL = 1
# Bytes of a body that is indented, which holds up other requests: 20 ms at most. Nobody reads more.
MOST_INDENTED = 512 * 1024
_FOR_PEOPLE = ("curl", "Wget", "Mozilla/5.0")  # how their User-Agent begins
# Bytes of a response that are sent at once. asyncio notices only between writes that a client does
# not read, and TLS copies what is written: such a client keeps this in memory two or three times.
PIECE = 64 * 1024
_SHORT_YAML = 16 * 1024  # bytes of JSON that the event loop turns into YAML
_NO_CACHE = (b"cache-control", b"no-cache, private")


# Clients refuse heads that are too large. As upstream's endpoints/filters/warning.go:
_MOST_WARNINGS = 4 * 1024  # characters in all warnings of a response, if they are more,
_LONGEST_WARNING = 256  # each is cut


def present(response: Response, request: Request) -> Response:
    """Returns a response as its client likes it: as YAML, or indented for people, and compressed if
    it is large and the client accepts that.
    """
    if response.content_type == JSON:
        accept = request.header(b"accept") if request.path.startswith("/api") else ""
        if accept and prefers_yaml(accept):
            response = to_yaml(response)
        elif is_for_people(request):
            response = indent(response)
    return _compress(response, request.header(b"accept-encoding"))


def is_for_people(request: Request) -> bool:
    """Reports whether a person reads the answer: the parameter `pretty` says so, or the name of a
    client such as curl or a browser.
    """
    if b"pretty" in request.query_string:
        with suppress(errors.BadRequest):
            if word := request.query.get("pretty"):
                return word in TRUE
    return request.header(b"user-agent").startswith(_FOR_PEOPLE)


def indent(response: Response) -> Response:
    """Returns a response whose JSON is indented, unless it is too large."""
    if len(response.body) > MOST_INDENTED:
        return response
    return replace(response, body=to_json(from_json(response.body), indent=2))


def to_yaml(response: Response) -> Response:
    """Returns a response with its JSON as YAML, the keys sorted as upstream's."""
    greenlets.raise_if_long(len(response.body), _SHORT_YAML)
    text = yaml.dump(from_json(response.body), Dumper=_Dumper, allow_unicode=True)
    return replace(response, body=text.encode(), content_type="application/yaml")


def _compress(response: Response, accept_encoding: str) -> Response:
    if len(response.body) < GZIP_FROM or "gzip" not in accept_encoding:
        return response
    packed = gzip.compress(response.body, _GZIP_LEVEL)
    return replace(response, body=packed, headers={**response.headers, "content-encoding": "gzip"})


async def send_response(
    response: Response, method: str, send: Send, further: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """Sends a response to a request of this method, with further headers."""
    headers = [
        (b"content-type", response.content_type.encode()),
        (b"content-length", str(len(response.body)).encode()),
        *(() if "cache-control" in response.headers else [_NO_CACHE]),
        *((name.encode(), value.encode()) for name, value in response.headers.items()),
        *further,
        *((b"warning", _warning(text)) for text in _limit(response.warnings)),
    ]
    await send({"type": "http.response.start", "status": response.code, "headers": headers})
    pieces = list(cut([b"" if method == "HEAD" else response.body])) or [b""]
    for piece in pieces[:-1]:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": pieces[-1]})


def cut(parts: Iterable[bytes]) -> Iterator[bytes | memoryview]:
    """Yields the bytes of all parts in pieces of about `PIECE`. Large parts are not copied."""
    small: list[bytes] = []
    size = 0
    for part in parts:
        if len(part) < PIECE:
            small.append(part)
            size += len(part)
        if size and (size >= PIECE or len(part) >= PIECE):
            yield b"".join(small)
            small, size = [], 0
        if len(part) >= PIECE:
            whole = memoryview(part)
            yield from (whole[start : start + PIECE] for start in range(0, len(whole), PIECE))
    if size:
        yield b"".join(small)


def _warning(text: str) -> bytes:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    printable = "".join(char if char.isprintable() else " " for char in quoted)
    return f'299 - "{printable}"'.encode()


def _limit(warnings: Sequence[str]) -> Iterator[str]:
    """Yields warnings, each once. If they are too long, each is cut, and the last ones are
    dropped.
    """
    texts = dict.fromkeys(text for text in warnings if text)
    if sum(len(text) for text in texts) > _MOST_WARNINGS:
        texts = dict.fromkeys(text[:_LONGEST_WARNING] for text in texts)
    left = _MOST_WARNINGS
    for text in texts:
        left -= len(text)
        if left < 0:
            return
        yield text
