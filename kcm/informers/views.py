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

    Unlike upstream's, apiVersion and kind are those of the object itself. The objects are of a
    subclass for each kind, so that they know it.
    """

    model_config = ConfigDict(extra="ignore")
    metadata_only = True


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
    model = _derive_model(resource)

    def decode(raw: bytes) -> PartialObjectMetadata:
        obj = compact(PartialObjectMetadata.model_validate_json(raw))
        object.__setattr__(obj, "__class__", model)
        return obj

    def convert(obj: KubeObject) -> PartialObjectMetadata:
        return model.model_construct(
            api_version=obj.api_version, kind=obj.kind, metadata=obj.metadata
        )

    return ObjectView(f"{resource.name} metadata", decode, convert)


def _derive_model(resource: Resource) -> type[PartialObjectMetadata]:
    """Returns the class for the metadata of a kind's objects.

    It decodes nothing, since a validator of its own would take 70 KiB.
    """
    body = {"__module__": __name__, "kubernetes_generated": True}
    model: type[PartialObjectMetadata] = type(
        "PartialObjectMetadata", (PartialObjectMetadata,), body
    )
    model.resource = resource  # type: ignore[assignment] # declared as a descriptor
    return model
