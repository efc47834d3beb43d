"""Checks of the broker's messages before they are delivered.

Any client that may write to the broker's lists or publish to its channels can put anything there,
and Celery stops at an invalid message. kcm's own messages need little of what a message can
contain, so all else is refused: callbacks, chains, later times.
"""

from __future__ import annotations

import base64
from collections.abc import Container
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

MOST_BYTES = 1 << 20  # the most bytes of a message; kcm's have a few hundred
_PIDBOX, _REPLIES, _EVENTS = ".celery.pidbox", ".reply.celery.pidbox", "celeryev."

_Name = Annotated[str, Field(min_length=1, max_length=1000)]
_Text = Annotated[str, Field(max_length=10_000)]
_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)] | None


class RefusedError(ValueError):
    """Raised for a message to drop. The first argument is one of a few reasons, by which it is
    counted.
    """


class UnknownTaskError(RefusedError):
    """Raised for a message that is valid, but for a task that this worker does not have. One of
    another version may have it.
    """


class _Strict(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class _Address(_Strict):
    exchange: str = ""
    routing_key: _Text = ""


class _Properties(_Strict):
    delivery_tag: _Name
    delivery_info: _Address
    body_encoding: str | None = None
    correlation_id: _Text | None = None
    reply_to: _Text | None = None


class _Envelope(_Strict):
    body: str = Field(min_length=1)
    content_type: str = Field(alias="content-type", pattern="^application/json$")
    content_encoding: str = Field(alias="content-encoding", pattern="^(?i:utf-?8)$")
    headers: dict[str, Any]
    properties: _Properties


class _Task(_Strict):
    """The headers of a task's message, protocol 2."""

    task: _Name
    id: _Name
    lang: _Text | None = None
    root_id: _Text | None = None
    parent_id: _Text | None = None
    group: _Text | None = None
    group_index: int | None = None
    shadow: _Text | None = None
    eta: None = None
    expires: Annotated[str, Field(max_length=40)] | float | None = None
    retries: Annotated[int, Field(ge=0, le=1000)] = 0
    timelimit: Annotated[list[_Seconds], Field(min_length=2, max_length=2)] | None = None
    argsrepr: _Text | None = None
    kwargsrepr: _Text | None = None
    origin: _Text | None = None
    ignore_result: bool | None = None
    replaced_task_nesting: int = 0
    stamped_headers: Annotated[list[str], Field(max_length=0)] | None = None
    stamps: Annotated[dict[str, Any], Field(max_length=0)] | None = None
    compression: None = None


class _Embedded(_Strict):
    callbacks: None = None
    errbacks: None = None
    chain: None = None
    chord: None = None


class _Reply(_Strict):
    exchange: _Name
    routing_key: _Name


class _Control(_Strict):
    method: _Name
    arguments: dict[str, Any] | None = None
    destination: list[str] | None = None
    pattern: _Text | None = None
    matcher: _Text | None = None
    reply_to: _Reply | None = None
    ticket: _Text | None = None


_BODY = (list[Any], dict[str, Any])


def parse_message(raw: bytes) -> Any:
    """Returns a message's JSON. Raises RefusedError."""
    if len(raw) > MOST_BYTES:
        raise RefusedError("too large", f"{len(raw)} bytes")
    try:
        return from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise RefusedError("not JSON", str(error)) from None


def check(message: Any, queue: str, tasks: Container[str] | None = None) -> None:
    """Raises RefusedError for a message that does not belong into a queue, UnknownTaskError if
    that is only for its task.

    `tasks` are the names of the worker's tasks. With None only the envelope is checked.
    """
    try:
        envelope = _Envelope.model_validate(message)
        if tasks is None or _EVENTS in queue or queue.endswith(_REPLIES):
            return  # replies and events, which no worker reads
        body = _body(envelope)
        if queue.endswith(_PIDBOX):
            _Control.model_validate(body)
            clock = envelope.headers.get("clock") or 0
            if not isinstance(clock, int) or not 0 <= clock < 1 << 62:
                raise RefusedError("wrong shape", "clock")
            return
        task = _Task.model_validate(envelope.headers).task
        _check_call(body)
        if task not in tasks:
            raise UnknownTaskError("unknown task", task)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise RefusedError("wrong shape", f"{place}: {first['msg']}") from None


def _body(envelope: _Envelope) -> Any:
    match envelope.properties.body_encoding:
        case "base64":
            try:
                text = base64.b64decode(envelope.body, validate=True)
            except ValueError as error:
                raise RefusedError("wrong shape", f"body: {error}") from None
        case None | "utf-8":
            text = envelope.body.encode("utf-8", "replace")
        case other:
            raise RefusedError("wrong shape", f"body_encoding {other!r:.40}")
    return parse_message(text)


def _check_call(body: Any) -> None:
    if not isinstance(body, list) or len(body) != 3:
        raise RefusedError("wrong shape", "the body is not [args, kwargs, embed]")
    args, kwargs, embedded = body
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise RefusedError("wrong shape", "args must be a list, and kwargs an object")
    _Embedded.model_validate(embedded or {})
