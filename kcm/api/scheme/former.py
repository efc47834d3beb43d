"""Reads objects that an earlier version of kcm has stored in an API version that is not served any
more.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from kcm.apimachinery.meta_v1 import KubeObject, Resource

Json = dict[str, Any]


def _keep(body: Json) -> None:
    """Changes nothing: the former version has the same fields."""


@dataclass(frozen=True)
class FormerVersion:
    """The conversion of a storage version that has replaced another one.

    `change` turns the JSON of the former version into that of the present one, in place.
    """

    api_version: str
    change: Callable[[Json], None] = _keep

    def from_stored(self, raw: bytes, resource: object) -> KubeObject:
        model = cast(Resource, resource).model
        obj = model.model_validate_json(raw, by_alias=True, by_name=False)
        if obj.api_version != self.api_version:
            return obj
        body: Json = json.loads(raw)
        self.change(body)
        body["apiVersion"] = cast(Resource, resource).api_version
        return model.model_validate_json(json.dumps(body), by_alias=True, by_name=False)

    def to_stored(self, obj: KubeObject) -> bytes:
        return type(obj).__pydantic_serializer__.to_json(obj, by_alias=True, exclude_none=True)
