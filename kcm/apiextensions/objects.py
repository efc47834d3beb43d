"""Prunes, defaults and validates custom objects by the schema of their version.

Objects are not changed in place.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresource/{strategy,
status_strategy,validator}.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any, TypeVar

from kcm.api import codec
from kcm.api.custom.kinds import CustomObject
from kcm.apiextensions import defaulting, embedded, pruning, validating
from kcm.apiextensions.cel import rules
from kcm.apimachinery.field_errors import Faults

ObjectT = TypeVar("ObjectT", bound=CustomObject)


def complete(obj: ObjectT, dropped: list[str] | None = None) -> ObjectT:
    """Returns the object pruned and with its defaults.

    The paths of the removed fields are appended to `dropped`.
    """
    content = pruning.root(obj.content, obj.custom.schema, dropped)
    return obj.with_content(defaulting.default(content, obj.custom.schema))


def list_unknown_fields(obj: CustomObject) -> list[str]:
    """Returns the paths of the object's fields that the schema does not have."""
    dropped: list[str] = []
    pruning.root(obj.content, obj.custom.schema, dropped)
    return dropped


def validate(obj: CustomObject, old: CustomObject | None = None) -> Faults:
    """Returns the faults of a custom object, or of the change from `old` to it.

    The object has been pruned and has its defaults. Values that the change leaves as they were may
    have faults.
    """
    schema, body = obj.custom.schema, _to_json(obj)
    before = None if old is None else _to_json(old)
    faults = validating.validate(body, schema.raw, old=before)
    faults += embedded.check(body, schema)
    if before is None or not any(validating.lists(before, schema)):
        faults += validating.lists(body, schema)
    return faults + rules.check(schema, body, before, faults)


def _to_json(obj: CustomObject) -> dict[str, Any]:
    """Returns the object as JSON values, with the nulls among its own fields."""
    return {**codec.to_dict(obj), **obj.content}
