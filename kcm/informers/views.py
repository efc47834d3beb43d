"""The views of informers: they cache whole objects, or only their metadata."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import ConfigDict

from kcm.api import codec
from kcm.api.scheme import Resource
from kcm.apimachinery.base import compact
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.informers.sharing import Sharing

T = TypeVar("T", bound=KubeObject)


class PartialObjectMetadata(KubeObject):
    """apiVersion, kind and metadata of an object of any kind. All other fields are ignored.

    Unlike upstream's, apiVersion and kind are those of the object itself.
    """

    model_config = ConfigDict(extra="ignore")


@dataclass(frozen=True, slots=True)
class ObjectView(Generic[T]):
    """How an informer turns what it reads into the objects that it caches.

    `decode` takes the JSON of a watch log entry, `convert` a listed object. `name` distinguishes
    informers of one kind.
    """

    name: str
    decode: Callable[[bytes], T]
    convert: Callable[[KubeObject], T]


def full_view(resource: Resource) -> ObjectView[KubeObject]:
    """Returns the view for whole objects of the kind's own model."""
    sharing = Sharing()

    def decode(raw: bytes) -> KubeObject:
        return sharing.share(codec.decode_stored(raw, resource))

    return ObjectView(resource.name, decode, sharing.share)


def metadata_view(resource: Resource) -> ObjectView[PartialObjectMetadata]:
    """Returns the view for metadata only."""

    def decode(raw: bytes) -> PartialObjectMetadata:
        return compact(PartialObjectMetadata.model_validate_json(raw))

    return ObjectView(f"{resource.name} metadata", decode, to_metadata)


def to_metadata(obj: KubeObject) -> PartialObjectMetadata:
    """Returns an object with the same metadata, which the two share."""
    return PartialObjectMetadata.model_construct(
        api_version=obj.api_version, kind=obj.kind, metadata=obj.metadata
    )
