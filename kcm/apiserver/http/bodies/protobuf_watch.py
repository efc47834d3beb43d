"""Turns the JSON lines of a watch into protobuf: each event as a WatchEvent after its length.

The length has four bytes, the highest first. The event itself is in no envelope, its object is.

Source: staging/src/k8s.io/apimachinery/pkg/runtime/serializer/protobuf (NewRawSerializer,
LengthDelimitedFramer), Kubernetes 1.36.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from pydantic_core import from_json
from starlette.types import Message, Send

from kcm.apiserver.http.bodies import protobuf
from kcm.apiserver.http.responses import JSON, PROTOBUF
from kcm.apiserver.http_errors import NotAcceptable

CONTENT_TYPE = f"{PROTOBUF};stream=watch"
_SHORT = 16 * 1024  # bytes of JSON that the event loop turns into protobuf


def frame_lines(lines: Iterable[bytes]) -> bytes:
    """Returns the frames of events, which are lines of JSON.

    Raises NotAcceptable for an object whose kind has no protobuf form.
    """
    return b"".join(_frame(line) for line in lines if line)


def _frame(line: bytes) -> bytes:
    # As in `protobuf`, the runtime is imported when it is needed.
    from kcm.apiserver.http.bodies.protobuf_messages import table  # noqa: PLC0415

    event = from_json(line)
    encoded = protobuf.encode(event["object"])
    if encoded is None:
        raise NotAcceptable
    message: Any = table().classes["meta/v1.WatchEvent"]()  # a class of run time
    message.f1, message.f2.f1 = event["type"], encoded
    raw: bytes = message.SerializeToString()
    return len(raw).to_bytes(4, "big") + raw


class ProtobufWatch:
    """Passes the ASGI messages of a response with lines of JSON on, as frames of protobuf."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = b""  # of a line whose end has not come

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            types = {JSON.encode(): CONTENT_TYPE.encode()}
            fields = [(name, types.get(value, value)) for name, value in message["headers"]]
            await self._send({**message, "headers": fields})
            return
        *lines, self._begun = (self._begun + message.get("body", b"")).split(b"\n")
        if sum(map(len, lines)) > _SHORT:
            body = await asyncio.to_thread(frame_lines, lines)
        else:
            body = frame_lines(lines)
        if body or not message.get("more_body"):
            await self._send({**message, "body": body})
