"""The views of informers: they cache whole objects, or only their metadata."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kcm.api import codec
from kcm.api.custom.partial import PartialObjectMetadata, decode_partial, derive_model
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.informers.sharing import Sharing

T = TypeVar("T", bound=KubeObject)


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
    """Returns the view for metadata only.

    A listed object and what is cached of it share the metadata.
    """
    model = derive_model(resource)

    def decode(raw: bytes) -> PartialObjectMetadata:
        return decode_partial(raw, model)

    def convert(obj: KubeObject) -> PartialObjectMetadata:
        return model.model_construct(
            api_version=obj.api_version, kind=obj.kind, metadata=obj.metadata
        )

    return ObjectView(f"{resource.name} metadata", decode, convert)
