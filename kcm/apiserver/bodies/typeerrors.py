"""Values of a wrong type, told as upstream's decoder tells them.

Source: encoding/json (UnmarshalTypeError) as sigs.k8s.io/json uses it, and
staging/src/k8s.io/apiserver/pkg/endpoints/handlers/rest.go, Kubernetes 1.33.
"""

from __future__ import annotations

import re
from typing import Any

from kcm import errors
from kcm.api.scheme import Resource
from kcm.apiextensions import structure
from kcm.apiextensions.structure import Shape, Struct

_STEP = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")
_PLAIN = {
    "string": "string", "boolean": "bool", "time": "v1.Time", "microtime": "v1.MicroTime",
    "quantity": "resource.Quantity", "intstr": "intstr.IntOrString", "any": "interface {}",
}  # fmt: skip


def in_body(error: errors.WrongType, resource: Resource) -> errors.BadRequest:
    """The refusal of a body."""
    return errors.BadRequest(
        f'{resource.kind} in version "{resource.version}" cannot be handled as a '
        f"{resource.kind}: {told(error, resource)}"
    )


def in_patch(error: errors.WrongType, resource: Resource, patch: bytes) -> errors.Invalid:
    """The refusal of a patch whose result is no object of its kind."""
    text = patch.decode(errors="replace").strip()
    return errors.Invalid(
        [errors.FieldError("Invalid value", "patch", text, told(error, resource))]
    )


def told(error: errors.WrongType, resource: Resource) -> str:
    """What is wrong, field by field."""
    pairs = zip(error.causes, error.found, strict=True)
    return ", ".join(_one(cause, found, resource) for cause, found in pairs)


def _one(cause: errors.FieldError, found: str, resource: Resource) -> str:
    if not found:
        return f"{cause.field}: {cause.detail}"
    struct, shape, path = _place(cause.field, resource)
    value = f"{found} {cause.value}" if _is_number_out_of_place(found, shape) else found
    wanted = go_type(shape) if shape else cause.detail.removeprefix("must be of type ")
    return f"json: cannot unmarshal {value} into Go struct field {struct}.{path} of type {wanted}"


def _is_number_out_of_place(found: str, shape: Shape | None) -> bool:
    return found == "number" and shape is not None and shape.kind == "integer"


def _place(field: str, resource: Resource) -> tuple[str, Shape | None, str]:
    """The struct that has the field, what the field holds, and the path without indices."""
    model: Struct = resource.model
    struct, shape, path = resource.kind, None, []
    for name, index in _STEP.findall(field):
        if not name:
            shape = shape.item if shape else None
            model = shape.model if shape else None
            if index and not index.isdecimal() and shape is None:
                path.append(index)
            continue
        known = structure.field(model, name)
        struct = model.__name__ if isinstance(model, type) else struct
        shape = known.shape if known else None
        model = shape.model if shape else None
        path.append(name)
    return struct, shape, ".".join(path)


def go_type(shape: Shape) -> str:
    """What Go calls it."""
    if shape.kind == "integer":
        return f"int{shape.bits}"
    if shape.kind == "list":
        return f"[]{_item(shape)}"
    if shape.kind == "map":
        return f"map[string]{_item(shape)}"
    if shape.kind == "struct":
        return _struct(shape.model)
    return _PLAIN[shape.kind]


def _item(shape: Shape) -> str:
    return go_type(shape.item) if shape.item else "interface {}"


def _struct(model: Any) -> str:
    version = re.search(r"_(v\w+)", model.__module__)
    return f"{version.group(1) if version else 'v1'}.{model.__name__}"
