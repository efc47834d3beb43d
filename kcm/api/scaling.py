"""How many replicas an object has and shall have, for every kind that says where it keeps that
(`Resource.scale`).

Asks nothing of the kind's model but that it is one.
Source: pkg/registry/apps/replicaset/storage/storage.go and
staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresource/etcd.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
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
    """What the `scale` subresource shows of an object."""

    replicas: int | None  # that it shall have; None: it does not say
    status_replicas: int  # that it has
    selector: str  # of its pods, as text; '': none


def scale_of(obj: KubeObject, resource: Resource) -> Scale:
    """The scale of an object whose kind has one."""
    where = resource.scale
    assert where is not None
    replicas = _at(obj, where.replicas)
    selector = _text_of(_at(obj, where.selector)) if where.selector else ""
    return Scale(replicas, _at(obj, where.status_replicas) or 0, selector)


def with_replicas(obj: KubeObject, replicas: int, resource: Resource) -> KubeObject:
    """The object with another number of replicas that it shall have. Raises: as codec.decode."""
    assert resource.scale is not None
    return codec.decode(put(codec.to_dict(obj), resource.scale.replicas, replicas), resource)


def _at(found: Any, path: str) -> Any:
    """What an object has at a path such as `.spec.replicas`; None where it has nothing."""
    for step in path.removeprefix(".").split("."):
        if isinstance(found, Model):
            name = _names(type(found)).get(step)
            found = getattr(found, name) if name else (found.model_extra or {}).get(step)
        else:
            found = found.get(step) if isinstance(found, Mapping) else None
    return found


@cache
def _names(model: type[Model]) -> Mapping[str, str]:
    """The attributes of a model by their names on the wire."""
    return {info.alias or name: name for name, info in model.model_fields.items()}


def put(body: Json, path: str, value: Any) -> dict[str, Any]:
    """The JSON with another value at the path; what lies beside it is shared."""
    first, _, rest = path.removeprefix(".").partition(".")
    inner = body.get(first)
    below = inner if isinstance(inner, Mapping) else {}
    return {**body, first: put(below, rest, value) if rest else value}


def _text_of(found: Any) -> str:
    """The text of a label selector; custom kinds keep the text itself, ReplicationControllers
    plain labels."""
    if isinstance(found, LabelSelector):
        return str(Selector.from_label_selector(found))
    if isinstance(found, str) or not found:
        return found or ""
    if all(isinstance(value, str) for value in found.values()):
        found = {"matchLabels": found}
    try:
        read = LabelSelector.model_validate(found, by_alias=True, by_name=False)
    except ValidationError:
        return ""
    return str(Selector.from_label_selector(read))
