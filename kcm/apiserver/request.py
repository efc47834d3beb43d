"""`Request`: an HTTP request as ASGI delivers it, and the reading of its body."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import parse_qsl, urlencode

from starlette.types import Receive, Scope

from kcm import errors

MAX_BODY = 3 * 1024 * 1024  # bytes, as upstream's limitedReader
_MOST_PARAMETERS = 100
TRUE = frozenset({"1", "t", "T", "true", "True", "TRUE"})  # as Go's ParseBool
_FALSE = frozenset({"0", "f", "F", "false", "False", "FALSE"})


@dataclass(frozen=True)
class Staleness:
    """How old a state a read at resourceVersion 0 shows: that of a version, or that of so many
    changes of the kind ago.

    A server may always answer such a read from the past. This one does only if a test asks for it.
    """

    changes: int = 0
    version: int = 0


@dataclass(frozen=True)
class Request:
    """The method, path, headers and body of a request."""

    method: str
    path: str
    query_string: bytes
    headers: Mapping[bytes, bytes]
    body: bytes = b""
    fields: Sequence[tuple[bytes, bytes]] = ()  # all headers, repeated ones too
    stale: Staleness | None = None

    def count(self, name: bytes) -> int:
        """Returns how often a header occurs."""
        return sum(1 for field, _ in self.fields if field == name)

    def header(self, name: bytes) -> str:
        """Returns the value of a header, "" if it is absent."""
        return self.headers.get(name, b"").decode("latin-1")

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """Returns the parameters of the query, repeated ones too. Raises BadRequest."""
        try:
            return parse_qsl(
                self.query_string.decode("latin-1"),
                keep_blank_values=True,
                max_num_fields=_MOST_PARAMETERS,
            )
        except ValueError as error:
            raise errors.BadRequest(f"the query cannot be read: {error}") from None

    @cached_property
    def query(self) -> Mapping[str, str]:
        """Returns the parameters of the query by name, with the first value of repeated ones.

        Raises BadRequest.
        """
        return dict(reversed(self.pairs))

    @property
    def content_type(self) -> str:
        """Returns the media type of the body, without parameters."""
        return self.header(b"content-type").partition(";")[0].strip().lower()


def head_of(scope: Scope) -> Request:
    """Returns the request of an ASGI scope, without its body. One at a deprecated path of watches
    is the request that it stands for.
    """
    fields = scope["headers"]
    path, query = scope["path"], scope["query_string"]
    if "/watch/" in path and scope["method"] == "GET":
        path, query = _replace_watch_prefix(path, query)
    return Request(scope["method"], path, query, dict(fields), fields=fields)


def _replace_watch_prefix(path: str, query: bytes) -> tuple[str, bytes]:
    """Returns the path and query of a list that watches, for a path such as
    `/api/v1/watch/namespaces/NAMESPACE/pods/NAME`.

    Source: staging/src/k8s.io/apiserver/pkg/endpoints/request/requestinfo.go (specialVerbs).
    """
    parts = path.strip("/").split("/")
    prefix = {"api": 2, "apis": 3}.get(parts[0], len(parts))
    rest = parts[prefix + 1 :]
    if parts[prefix : prefix + 1] != ["watch"] or not rest:
        return path, query
    collection = rest[:3] if rest[0] == "namespaces" and len(rest) > 2 else rest[:1]
    wanted = [("watch", "true")]
    if name := rest[len(collection) :]:
        wanted.append(("fieldSelector", f"metadata.name={'/'.join(name)}"))
    listed = "/".join(["", *parts[:prefix], *collection])
    return listed, b"&".join(filter(None, [urlencode(wanted).encode(), query]))


def truth(query: Mapping[str, str], name: str) -> bool:
    """Returns a boolean parameter, False if it is absent. Accepts what Go's ParseBool accepts.

    Raises BadRequest for another value. A parameter without a value is true.
    """
    value = query.get(name)
    if value is None or value in _FALSE:
        return False
    if not value or value in TRUE:
        return True
    raise errors.BadRequest(
        f"invalid value of parameter {name}: {errors.shorten(value)!r} is not a boolean"
    )


async def read_body(receive: Receive, came: Callable[[int], None]) -> bytes:
    """Returns the body. `came` is called with the size of each part in bytes, and may raise.

    Raises RequestTooLarge beyond MAX_BODY, and Disconnected.
    """
    body = bytearray()  # a list of many small parts would take more memory
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        part = message.get("body", b"")
        if len(body) + len(part) > MAX_BODY:
            raise errors.RequestTooLarge(f"Request entity too large: limit is {MAX_BODY}")
        came(len(part))
        body += part
        if not message.get("more_body"):
            return bytes(body)


class Disconnected(errors.KcmError):
    """The client has left."""


@dataclass
class Remarks:
    """Warnings for the client, and annotations of the request's line in the audit log."""

    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
