"""Content negotiation: in which form a client wants a response.

Responses are JSON: an object, a Table or metadata alone. A client that prefers protobuf gets JSON
if its Accept header lists JSON, too.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/negotiation, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from kcm.apiserver.http_errors import NotAcceptable

_JSON = frozenset({"application/json", "application/*", "*/*"})
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
def negotiate(header: str) -> Form:
    """Returns the form of the response to a request with this Accept header.

    Raises NotAcceptable.
    """
    if not header:
        return Form()
    for media in media_types(header):
        if media.name not in _JSON:
            continue
        as_ = media.get("as")
        if not as_:
            return Form()
        if as_ in _AS and media.get("g") == _META and media.get("v") in {"v1", "v1beta1"}:
            return Form(as_.removesuffix("List"), media.get("v"))
    raise NotAcceptable
