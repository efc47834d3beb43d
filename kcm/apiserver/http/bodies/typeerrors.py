"""Formats errors about values of a wrong type as upstream's decoder does.

Source: encoding/json (UnmarshalTypeError) as sigs.k8s.io/json uses it, and
staging/src/k8s.io/apiserver/pkg/endpoints/handlers/rest.go, Kubernetes 1.33.
"""

from __future__ import annotations

import json
import re
from typing import Any

from kcm import errors
from kcm.api.scheme import Resource
from kcm.apiextensions import structure
from kcm.apiextensions.structure import Shape, Struct
from kcm.apiserver.http.bodies import typed

_SHOWN = 30  # bytes of a body that an error shows
_STEP = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")
_RESTORED = {"map": "map from", "list": "slice from", "struct": "struct from:"}
_GO_KINDS = {"number": "int64", "array": "slice", "object": "map"}
_PLAIN = {
    "string": "string", "boolean": "bool", "time": "v1.Time", "microtime": "v1.MicroTime",
    "quantity": "resource.Quantity", "intstr": "intstr.IntOrString", "any": "interface {}",
}  # fmt: skip


def in_body(error: errors.WrongType, resource: Resource) -> errors.BadRequest:
    """Returns the error of a body with values of a wrong type."""
    return errors.BadRequest(
        f'{resource.kind} in version "{resource.version}" cannot be handled as a '
        f"{resource.kind}: {describe(error, resource)}"
    )


def unrecognized(error: errors.NotJson, resource: Resource, body: bytes) -> errors.BadRequest:
    """Returns the error of a body that is not JSON, with the beginning of the body."""
    begin = body.lstrip()[:1].decode(errors="replace")
    is_no_value = begin not in '{["-0123456789tfn'
    why = (
        f"invalid character '{begin}' looking for beginning of value" if is_no_value else error.why
    )
    return errors.BadRequest(
        f"the object provided is unrecognized (must be of type {resource.kind}): couldn't get "
        f"version/kind; json parse error: {why} ({_summarize(body)})"
    )


def _summarize(body: bytes) -> str:
    """Returns the first bytes of a body, in hexadecimal digits unless it looks like an object."""
    shown = body[:_SHOWN]
    text = shown.decode(errors="replace") if body.startswith(b"{") else shown.hex()
    return text + (" ..." if len(body) > _SHOWN else "") if body else "<empty>"


def in_patch(
    error: errors.WrongType, resource: Resource, patch: bytes, *, strategic: bool
) -> errors.Invalid:
    """Returns the error of a patch whose result has values of a wrong type.

    A strategic merge patch is shown as Go prints it, and its first wrong value alone is told.
    """
    text, why = patch.decode(errors="replace").strip(), describe(error, resource)
    if strategic:
        text = typed.print_value(json.loads(patch))
        why = _describe_restored(error, resource) or why
    return errors.Invalid([errors.FieldError("Invalid value", "patch", errors.shorten(text), why)])


def _describe_restored(error: errors.WrongType, resource: Resource) -> str:
    """Returns what upstream's converter says about a value where a map, list or struct should be,
    "" for other values.
    """
    _, shape, _ = _place(error.causes[0].field, resource)
    given = _GO_KINDS.get(error.given[0], error.given[0])
    wanted = _RESTORED.get(shape.kind, "") if shape is not None else ""
    return f"cannot restore {wanted} {given}" if wanted else ""


def describe(error: errors.WrongType, resource: Resource) -> str:
    """Returns the text for all wrong values of an error."""
    pairs = zip(error.causes, error.given, strict=True)
    return ", ".join(_describe_field(cause, json_type, resource) for cause, json_type in pairs)


def _describe_field(cause: errors.FieldError, json_type: str, resource: Resource) -> str:
    if not json_type:
        return f"{cause.field}: {cause.detail}"
    struct, shape, path = _place(cause.field, resource)
    value = f"{json_type} {cause.value}" if _is_number_out_of_place(json_type, shape) else json_type
    wanted = go_type(shape) if shape else cause.detail.removeprefix("must be of type ")
    return f"json: cannot unmarshal {value} into Go struct field {struct}.{path} of type {wanted}"


def _is_number_out_of_place(json_type: str, shape: Shape | None) -> bool:
    return json_type == "number" and shape is not None and shape.kind == "integer"


def _place(field: str, resource: Resource) -> tuple[str, Shape | None, str]:
    """Returns the name of the struct that has the field, the field's shape, and its path.

    The path has no list indices. The shape is None for an unknown field.
    """
    model: Struct = resource.model
    struct, shape, path = resource.kind, None, []
    for name, index in _STEP.findall(field):
        if not name:
            shape = shape.item if shape else None
            model = shape.model if shape else None
            if index and not index.isdecimal() and shape is None:
                path.append(index)
            continue
        declared = structure.field(model, name)
        struct = model.__name__ if isinstance(model, type) else struct
        shape = declared.shape if declared else None
        model = shape.model if shape else None
        path.append(name)
    return struct, shape, ".".join(path)


def go_type(shape: Shape) -> str:
    """Returns the Go type of a shape, such as `[]string`."""
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
