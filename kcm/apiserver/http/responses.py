"""Requests and responses as handlers see them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kcm import errors
from kcm.apiserver.auth.authorizer import NOBODY, Caller
from kcm.apiserver.http.accept import Form
from kcm.apiserver.request import truth
from kcm.apiserver.request_info import RequestInfo

JSON = "application/json"
_MOST = 2**63 - 1  # as large as any number of the API
MAX_MANAGER = 128  # characters of a field manager's name, as upstream


@dataclass(frozen=True)
class ApiRequest:
    """One request on objects, its body included."""

    method: str
    info: RequestInfo
    query: Mapping[str, str]
    content_type: str
    body: bytes
    form: Form
    agent: str = ""
    caller: Caller = NOBODY

    @property
    def manager(self) -> str:
        """Returns who manages the fields that this request sets: fieldManager, else the client's
        name.

        Raises BadRequest.
        """
        name = self.query.get("fieldManager", "")
        if len(name) > MAX_MANAGER or not name.isprintable():
            raise errors.BadRequest(
                f"fieldManager: Invalid value: must be at most {MAX_MANAGER} printable characters"
            )
        return name or self.agent.partition("/")[0][:MAX_MANAGER] or "unknown"

    def flag(self, name: str) -> bool:
        """Returns a boolean parameter. As upstream, it is true where it has no value.

        Raises BadRequest.
        """
        return truth(self.query, name)

    @property
    def dry_run(self) -> bool:
        """Whether nothing is to be stored. Raises BadRequest for a word other than All."""
        return dry_run(self.query.get("dryRun", ""))


def dry_run(word: str) -> bool:
    """Returns what a dryRun parameter or option means. Raises BadRequest."""
    if word not in {"", "All"}:
        raise errors.BadRequest(f'dryRun: Unsupported value: "{word}": supported values: "All"')
    return word == "All"


def read_number(query: Mapping[str, str], name: str) -> int | None:
    """Returns a parameter that is a whole number from 0 on. Raises BadRequest."""
    text = query.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise errors.BadRequest(f"invalid value of parameter {name}: {text!r} is not a number")
    if int(text) > _MOST:
        raise errors.BadRequest(
            f'invalid value of parameter {name}: parsing "{text}": value out of range'
        )
    return int(text)


@dataclass(frozen=True)
class Response:
    """What goes back to the client: code, headers and body."""

    body: bytes
    code: int = 200
    content_type: str = JSON
    warnings: Sequence[str] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


def json_bytes(value: Any) -> bytes:
    """Returns compact JSON. Half of a surrogate pair, which no text can hold, becomes `?`."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def json_response(value: Any, code: int = 200, warnings: Sequence[str] = ()) -> Response:
    """Returns a response with this JSON value."""
    return Response(json_bytes(value), code, warnings=warnings)
