"""Custom kinds whose objects a webhook converts between versions.

Only the API server asks webhooks. It names itself as the converter for the time of a request
(`asking`). Everything else, such as a controller, reads an object in the version in which it is
stored, and writes it in that version: what controllers look at, which is metadata, is the same in
every version.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/converter.go, Kubernetes
1.33.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from kcm import errors
from kcm.api import codec
from kcm.api.apiextensions_v1 import WebhookConversion
from kcm.api.custom.kinds import CustomObject
from kcm.api.scheme import Conversion, Resource
from kcm.apiextensions import objects
from kcm.apimachinery.meta_v1 import KubeObject

T = TypeVar("T")
# The version at the beginning of an object's JSON, where kcm writes it.
_FIRST = re.compile(rb'\{(?:"kind":"[^"\\]*",)?"apiVersion":"([^"\\]*)"')
_MOST_OUTDATED = 16  # objects of one request


class Converter(Protocol):
    """Asks webhooks, as `kcm.apiserver.egress.conversion.converter.WebhookConverter` does."""

    def convert(self, objects: Sequence[CustomObject], target: Resource) -> list[CustomObject]:
        """Returns the objects in the version of `target`, in their order.

        None of them is in that version. Raises ConversionFailed.
        """


@dataclass(frozen=True)
class _Request:
    """The converter of one request, and the objects that it has converted."""

    converter: Converter
    # objects that it has read and that are stored in another version than the storage version
    outdated: deque[KubeObject] = field(default_factory=lambda: deque(maxlen=_MOST_OUTDATED))


_REQUEST: ContextVar[_Request | None] = ContextVar("conversion", default=None)


@contextmanager
def asking(converter: Converter) -> Iterator[None]:
    """Converts objects with `converter` while the block runs."""
    before = _REQUEST.set(_Request(converter))
    try:
        yield
    finally:
        _REQUEST.reset(before)


def carry(call: Callable[[], T]) -> Callable[[], T]:
    """Returns the call, for another thread, with the converter that this one has."""
    request = _REQUEST.get()

    def carried() -> T:
        before = _REQUEST.set(request)
        try:
            return call()
        finally:
            _REQUEST.reset(before)

    return carried


def is_outdated(obj: KubeObject) -> bool:
    """Reports whether the request has read `obj` and it is stored in another version than the
    storage version, so that a write that changes nothing is worth while.
    """
    request = _REQUEST.get()
    return request is not None and any(other is obj for other in request.outdated)


@dataclass
class KindVersions:
    """The versions of one custom kind, and the webhook that converts between them."""

    name: str  # of the definition
    webhook: WebhookConversion
    stored: frozenset[str]  # the versions in which objects may be stored, such as `v1`
    by_api_version: dict[str, Resource] = field(default_factory=dict)  # storage version first

    @property
    def storage(self) -> Resource:
        """The storage version."""
        return next(iter(self.by_api_version.values()))

    def version_of(self, raw: bytes) -> Resource:
        """Returns the version of an object in JSON. Raises BadRequest if the kind has it not."""
        first = _FIRST.match(raw)
        api_version = first[1].decode(errors="replace") if first else _find_version(raw)
        version = self.by_api_version.get(api_version)
        if version is None:
            raise errors.BadRequest(
                f"request to convert CR from an invalid group/version: {api_version}"
            )
        return version


def _find_version(raw: bytes) -> str:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return ""
    return str(body.get("apiVersion", "")) if isinstance(body, dict) else ""


class ConversionByWebhook(Conversion):
    """Converts objects of a kind by asking its webhook, where something may ask."""

    def __init__(self, versions: KindVersions) -> None:
        self.versions = versions

    def from_stored(self, raw: bytes, resource: Resource) -> KubeObject:
        """Returns the object, in the stored version where nobody may ask the webhook.

        Raises ConversionFailed, and what `codec.decode` raises.
        """
        source = self.versions.version_of(raw)
        obj = read(raw, source)
        request = _REQUEST.get()
        if request is None:
            return obj
        if source is not resource:
            obj = request.converter.convert([obj], resource)[0]
        if source is not self.versions.storage:
            request.outdated.append(obj)
        return obj

    def to_stored(self, obj: KubeObject) -> bytes:
        """Returns the JSON of the object in the storage version, where somebody may ask the
        webhook.

        Elsewhere its version stays. Raises ConversionFailed, and BadRequest if objects may not be
        stored in that version.
        """
        storage, request = self.versions.storage, _REQUEST.get()
        if obj.api_version == storage.api_version:
            return codec.encode(obj)
        assert isinstance(obj, CustomObject)  # the resource is of a custom kind
        if request is not None:
            return codec.encode(request.converter.convert([obj], storage)[0])
        if obj.api_version.rpartition("/")[2] not in self.versions.stored:
            raise errors.BadRequest(
                f"{self.versions.name} is stored in {storage.api_version}, and only the API server "
                f"asks the webhook that converts {obj.api_version}: send the object there"
            )
        return codec.encode(obj)


def read(raw: bytes, version: Resource) -> CustomObject:
    """Returns the object from JSON in this version, pruned and with the version's defaults."""
    obj = codec.read(raw, version)
    assert isinstance(obj, CustomObject)  # the resource is of a custom kind
    return objects.complete(obj)


def webhook_versions(resource: Resource) -> KindVersions | None:
    """Returns the versions of a kind that a webhook converts, None for other kinds."""
    conversion = resource.conversion
    return conversion.versions if isinstance(conversion, ConversionByWebhook) else None


def to_version(obj: KubeObject, resource: Resource, target: Resource) -> KubeObject:
    """Returns an object in the version of `resource` in that of `target`, another one of its kind.

    Raises ConversionFailed.
    """
    request = _REQUEST.get()
    if request is None or webhook_versions(resource) is None:
        return codec.decode_stored(codec.encode_stored(obj, resource), target)
    assert isinstance(obj, CustomObject)  # only custom kinds have a webhook
    return request.converter.convert([obj], target)[0]
