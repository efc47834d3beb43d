"""The `scale` subresource of objects.

It works for every kind whose `Resource.scale` says where the replicas are, built-in or custom.
Source: pkg/registry/apps/replicaset/storage/storage.go and
staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresource/etcd.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from kcm.api import codec
from kcm.api.scheme import Resource
from kcm.apimachinery.base import Model
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject, LabelSelector

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Scale:
    """The values that the `scale` subresource of an object shows."""

    replicas: int | None  # wanted replicas, None if the object does not have the field
    status_replicas: int  # replicas that it has
    selector: str  # the selector of its pods as text, or ""


def scale_of(obj: KubeObject, resource: Resource) -> Scale:
    """Returns the scale of an object. `resource.scale` must be set."""
    where = _version_of(obj, resource).scale
    assert where is not None
    replicas = _at(obj, where.replicas)
    selector = _text_of(_at(obj, where.selector)) if where.selector else ""
    return Scale(replicas, _at(obj, where.status_replicas) or 0, selector)


def with_replicas(obj: KubeObject, replicas: int, resource: Resource) -> KubeObject:
    """Returns the object with another number of wanted replicas.

    Raises what `codec.decode` does.
    """
    version = _version_of(obj, resource)
    assert version.scale is not None
    return codec.decode(put(codec.to_dict(obj), version.scale.replicas, replicas), version)


def _version_of(obj: KubeObject, resource: Resource) -> Resource:
    """Returns the version that the object is in, if it has a scale, else `resource`.

    An object that only a webhook converts may be in another version than `resource`.
    """
    if obj.api_version == resource.api_version:
        return resource
    version = obj.resource
    return version if version.scale is not None else resource


def _at(value: Any, path: str) -> Any:
    """Returns the value at a path such as `.spec.replicas`, or None if there is none."""
    for step in path.removeprefix(".").split("."):
        if isinstance(value, Model):
            name = codec.attributes_of(type(value)).get(step)
            value = getattr(value, name) if name else (value.model_extra or {}).get(step)
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return value


def put(body: Json, path: str, value: Any) -> dict[str, Any]:
    """Returns the JSON with another value at the path. The other parts are shared with `body`."""
    first, _, rest = path.removeprefix(".").partition(".")
    inner = body.get(first)
    below = inner if isinstance(inner, Mapping) else {}
    return {**body, first: put(below, rest, value) if rest else value}


def _text_of(selector: Any) -> str:
    """Returns a label selector as text, "" for none and for one that cannot be read.

    Custom kinds keep the text itself, ReplicationControllers plain labels.
    """
    if isinstance(selector, LabelSelector):
        return str(Selector.from_label_selector(selector))
    if isinstance(selector, str) or not selector:
        return selector or ""
    if all(isinstance(value, str) for value in selector.values()):
        selector = {"matchLabels": selector}
    try:
        read = LabelSelector.model_validate(selector, by_alias=True, by_name=False)
    except ValidationError:
        return ""
    return str(Selector.from_label_selector(read))
