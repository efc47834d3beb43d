"""`ApiRequest` and `Response`: requests and responses as handlers use them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from kcm import errors
from kcm.apiserver.auth.authorizer import NOBODY, Caller
from kcm.apiserver.http_errors import NotAcceptable
from kcm.apiserver.request import Remarks, Staleness, truth
from kcm.apiserver.request_info import RequestInfo

# --- Content negotiation: in which form a client wants a response.
#
# Responses are JSON: an object, a Table or metadata alone. A client that prefers protobuf gets JSON
# if its Accept header lists JSON, too, since that costs the server nothing. One that prefers YAML
# gets that, and one that takes nothing but protobuf gets that.
#
# Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/negotiation, Kubernetes 1.33.


_JSON = frozenset({"application/json", "application/*", "*/*"})
_YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
_META = "meta.k8s.io"
_AS = frozenset({"Table", "PartialObjectMetadata", "PartialObjectMetadataList"})


@dataclass(frozen=True)
class Form:
    """The form of a response.

    `as_` is "Table", "PartialObjectMetadata", or "" for the object itself.
    """

    as_: str = ""
    version: str = "v1"

    @property
    def api_version(self) -> str:
        return f"{_META}/{self.version}"


@dataclass(frozen=True)
class MediaType:
    """One entry of an Accept header."""

    name: str
    parameters: tuple[tuple[str, str], ...]

    def get(self, name: str) -> str:
        return dict(self.parameters).get(name, "")


@lru_cache(maxsize=256)
def media_types(header: str) -> tuple[MediaType, ...]:
    """Returns the entries of an Accept header, those with the highest quality first."""
    entries = sorted(_entries(header), key=lambda entry: -entry[0])
    return tuple(media for _, media in entries)


def _entries(header: str) -> Iterator[tuple[float, MediaType]]:
    for part in header.split(","):
        name, *rest = (piece.strip() for piece in part.split(";"))
        pairs = tuple(
            (key.strip(), value.strip()) for key, _, value in (p.partition("=") for p in rest)
        )
        try:
            quality = float(dict(pairs).get("q", "1"))
        except ValueError:
            quality = 1.0
        if name:
            yield quality, MediaType(name.lower(), pairs)


@lru_cache(maxsize=256)
def negotiate(
    header: str, *, tables: bool = True, protobuf: bool = False, streams: bool = False
) -> Form:
    """Returns the form of the response to a request with this Accept header.

    `tables` and `protobuf` say whether there can be a Table or protobuf of what is asked for. YAML
    cannot be streamed. Raises NotAcceptable.
    """
    if not header:
        return Form()
    for media in media_types(header):
        if media.name not in _JSON and (media.name != _YAML or streams):
            continue
        as_ = media.get("as")
        if not as_:
            return Form()
        if as_ == "Table" and not tables:
            continue
        if as_ in _AS and media.get("g") == _META and media.get("v") in {"v1", "v1beta1"}:
            return Form(as_.removesuffix("List"), media.get("v"))
    if protobuf and prefers_protobuf(header):
        return Form()
    raise NotAcceptable


@lru_cache(maxsize=256)
def prefers_protobuf(header: str) -> bool:
    """Reports whether an Accept header names protobuf of whole objects, and neither JSON nor
    YAML.
    """
    media = media_types(header)
    return any(one.name == PROTOBUF and not one.get("as") for one in media) and not any(
        one.name in _JSON or one.name == _YAML for one in media
    )


@lru_cache(maxsize=256)
def prefers_yaml(header: str) -> bool:
    """Reports whether an Accept header names YAML before JSON."""
    names = [media.name for media in media_types(header)]
    return next((name == _YAML for name in names if name in _JSON or name == _YAML), False)


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
