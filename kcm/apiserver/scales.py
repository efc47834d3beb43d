"""The Scale of an object, as clients and policies see it."""

from __future__ import annotations

from typing import Any

from kcm import errors
from kcm.api import codec, scaling
from kcm.api.scheme import Resource, ScalePaths
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.http_errors import PathNotFound

API_VERSION = "autoscaling/v1"
_SHOWN_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(obj: KubeObject, resource: Resource) -> dict[str, Any]:
    """Returns the JSON of an object's Scale.

    Raises ApiError if the object has no replicas field.
    """
    where, current = scale_paths(resource), scaling.scale_of(obj, resource)
    if current.replicas is None:
        raise errors.ApiError(
            f'Internal error occurred: the spec replicas field "{where.replicas}" does not exist'
        )
    shown: dict[str, Any] = {"replicas": current.status_replicas}
    if current.selector:
        shown["selector"] = current.selector
    metadata = codec.to_dict(obj)["metadata"]
    return {
        "kind": "Scale",
        "apiVersion": API_VERSION,
        "metadata": {name: metadata[name] for name in _SHOWN_METADATA if name in metadata},
        "spec": {"replicas": current.replicas},
        "status": shown,
    }


def scale_paths(resource: Resource) -> ScalePaths:
    """Returns the paths of a kind's Scale. Raises PathNotFound for a kind that has none."""
    if resource.scale is None:
        raise PathNotFound
    return resource.scale
