"""`ApiRequest` and `Response`: requests and responses as handlers use them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kcm import errors
from kcm.apiserver.auth.authorizer import NOBODY, Caller
from kcm.apiserver.http.accept import Form
from kcm.apiserver.remarks import Remarks
from kcm.apiserver.request import Staleness, truth
from kcm.apiserver.request_info import RequestInfo

JSON = "application/json"
_MOST = 2**63 - 1  # as large as any number of the API
MAX_MANAGER = 128  # characters of a field manager's name, as upstream


@dataclass(frozen=True)
class ApiRequest:
    """A request on a resource, with its body."""

    method: str
    info: RequestInfo
    query: Mapping[str, str]
    content_type: str
    body: bytes
    form: Form
    agent: str = ""
    caller: Caller = NOBODY
    remarks: Remarks = field(default_factory=Remarks)
    stale: Staleness | None = None  # for reads at resourceVersion 0

    @property
    def manager(self) -> str:
        """Returns the field manager: the parameter fieldManager, or the name of the client.

        Raises BadRequest.
        """
        name = self.query.get("fieldManager", "")
        if len(name) > MAX_MANAGER or not name.isprintable():
            raise errors.BadRequest(
                f"fieldManager: Invalid value: must be at most {MAX_MANAGER} printable characters"
            )
        return name or self.agent.partition("/")[0][:MAX_MANAGER] or "unknown"

    def flag(self, name: str) -> bool:
        """Returns a boolean parameter. As upstream, one without a value is true.

        Raises BadRequest.
        """
        return truth(self.query, name)

    @property
    def dry_run(self) -> bool:
        """Reports whether nothing is to be stored. Raises BadRequest for a value other than All."""
        return dry_run(self.query.get("dryRun", ""))


def dry_run(word: str) -> bool:
    """Reports whether a value of dryRun asks for a dry run. Raises BadRequest."""
    if word not in {"", "All"}:
        raise errors.BadRequest(f'dryRun: Unsupported value: "{word}": supported values: "All"')
    return word == "All"


def read_number(query: Mapping[str, str], name: str) -> int | None:
    """Returns the value of a parameter as an integer, None without a value.

    Raises BadRequest unless it is a whole number from 0 to 2^63 - 1.
    """
    text = query.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise errors.BadRequest(
            f"invalid value of parameter {name}: {errors.shorten(text)!r} is not a number"
        )
    if int(text) > _MOST:
        raise errors.BadRequest(
            f'invalid value of parameter {name}: parsing "{text}": value out of range'
        )
    return int(text)


@dataclass(frozen=True)
class Response:
    """A response to a client."""

    body: bytes
    code: int = 200
    content_type: str = JSON
    warnings: Sequence[str] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


def with_warnings(response: Response, warnings: Iterable[str]) -> Response:
    """Returns a response with further warnings, each once."""
    further = dict.fromkeys(warnings)
    return replace(response, warnings=[*response.warnings, *further]) if further else response


def json_bytes(value: Any) -> bytes:
    """Returns compact JSON. A lone surrogate, which UTF-8 cannot encode, becomes `?`."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def json_response(value: Any, code: int = 200, warnings: Sequence[str] = ()) -> Response:
    """Returns a response with this JSON value."""
    return Response(json_bytes(value), code, warnings=warnings)
