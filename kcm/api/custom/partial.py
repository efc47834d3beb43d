"""Objects of which only the metadata is there: of kinds without a model, and in caches for which
metadata is enough.
"""

from __future__ import annotations

from typing import TypeVar, cast

from pydantic import ConfigDict

from kcm.api.scheme import Resource
from kcm.apimachinery.base import compact
from kcm.apimachinery.meta_v1 import KubeObject


class PartialObjectMetadata(KubeObject):
    """apiVersion, kind and metadata of an object of any kind. All other fields are ignored.

    Unlike upstream's, apiVersion and kind are those of the object itself. The objects are of a
    subclass for each kind, so that they know it.
    """

    model_config = ConfigDict(extra="ignore")
    metadata_only = True


Partial = TypeVar("Partial", bound=PartialObjectMetadata)


def derive_model(resource: Resource) -> type[PartialObjectMetadata]:
    """Returns the class for the metadata of a kind's objects.

    It decodes nothing, since a validator of its own would take 70 KiB.
    """
    if resource.model.metadata_only:
        return cast(type[PartialObjectMetadata], resource.model)
    return _new_model(resource)


def new_metadata_resource(
    group: str, version: str, plural: str, kind: str, *, namespaced: bool
) -> Resource[PartialObjectMetadata]:
    """Returns the resource of a kind that has no model, whose objects are read as metadata."""
    model = _new_model(None)
    resource = Resource(group, version, kind, plural, kind.lower(), namespaced, model)
    model.resource = resource  # type: ignore[assignment] # declared as a descriptor
    return resource


def decode_partial(raw: bytes, model: type[Partial]) -> Partial:
    """Returns the metadata of an object from its JSON. Raises ValueError."""
    obj = compact(PartialObjectMetadata.model_validate_json(raw))
    object.__setattr__(obj, "__class__", model)
    return cast(Partial, obj)


def _new_model(resource: Resource | None) -> type[PartialObjectMetadata]:
    body = {"__module__": __name__, "kubernetes_generated": True}
    model: type[PartialObjectMetadata] = type(
        "PartialObjectMetadata", (PartialObjectMetadata,), body
    )
    if resource is not None:
        model.resource = resource  # type: ignore[assignment] # declared as a descriptor
    return model
