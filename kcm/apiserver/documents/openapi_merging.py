"""OpenAPI documents of other servers: what is taken from them, and how it joins our own.

Source: pkg/aggregator and pkg/openapiconv in k8s.io/kube-openapi, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]

_DEFINITION, _SCHEMA = "#/definitions/", "#/components/schemas/"
_SECTIONS = ("definitions", "parameters")  # what operations refer to
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
_JSON = "application/json"


def select_paths(document: Any, prefix: str) -> dict[str, Any]:
    """Returns the paths of a document of version 2 that begin with `prefix`, and the definitions
    and parameters that they refer to.

    Raises ValueError if this is no such document.
    """
    if not isinstance(document, dict):
        raise ValueError("the document is no object")
    paths = _objects(document.get("paths"), "paths")
    present = {
        f"#/{section}/{name}": value
        for section in _SECTIONS
        for name, value in _objects(document.get(section) or {}, section).items()
    }
    chosen = {path: item for path, item in paths.items() if path.startswith(prefix)}
    reached = find_references(chosen.values(), present)
    return {"paths": chosen} | {section: _in_section(reached, section) for section in _SECTIONS}


def find_references(values: Iterable[Any], present: Json) -> dict[str, Any]:
    """Returns what the values refer to, directly or not, by reference; `present` has everything."""
    wanted, reached = list(_list_refs(values)), dict[str, Any]()
    while wanted:
        ref = wanted.pop()
        if ref in present and ref not in reached:
            reached[ref] = present[ref]
            wanted += _list_refs([present[ref]])
    return reached


def _in_section(values: Json, section: str) -> dict[str, Any]:
    start = f"#/{section}/"
    return {ref.removeprefix(start): one for ref, one in values.items() if ref.startswith(start)}


def _objects(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(item, dict) for item in value.values()):
        raise ValueError(f"{what} of the document are no objects")
    return value


def _list_refs(values: Iterable[Any]) -> Iterator[str]:
    """Yields what is referred to anywhere in the values, such as `#/definitions/NAME`."""
    stack = list(values)
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            ref = value.get("$ref")
            if isinstance(ref, str):
                yield ref
            stack += value.values()
        elif isinstance(value, list):
            stack += value


def merge(own: dict[str, Any], pieces: Iterable[Json]) -> dict[str, Any]:
    """Returns a document of version 2 with the paths, definitions and parameters of the pieces
    added.

    A path that is there already stays. What has the name of something else gets a new name.
    """
    paths = dict(own["paths"])
    sections = {section: dict(own.get(section, {})) for section in _SECTIONS}
    for piece in pieces:
        names = {
            (section, name): _free_name(sections[section], name, value)
            for section in _SECTIONS
            for name, value in piece.get(section, {}).items()
        }
        rename = _renaming(names)
        for (section, name), free in names.items():
            if free not in sections[section]:
                sections[section][free] = rename(piece[section][name])
        for path, item in piece["paths"].items():
            paths.setdefault(path, rename(item))
    return own | {"paths": paths} | {name: one for name, one in sections.items() if one}


def _free_name(definitions: Json, name: str, schema: Any) -> str:
    candidate, number = name, 1
    while candidate in definitions and definitions[candidate] != schema:
        number += 1
        candidate = f"{name}_v{number}"
    return candidate


def _renaming(names: Mapping[tuple[str, str], str]) -> Callable[[Any], Any]:
    """Returns a function that gives references their new names, by section and old name."""
    changed = {
        f"#/{section}/{old}": f"#/{section}/{new}"
        for (section, old), new in names.items()
        if old != new
    }
    return (lambda value: _replace_refs(value, changed)) if changed else (lambda value: value)


def _replace_refs(value: Any, changed: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_replace_refs(item, changed) for item in value]
    if not isinstance(value, dict):
        return value
    replaced = {key: _replace_refs(item, changed) for key, item in value.items()}
    if isinstance(ref := value.get("$ref"), str):
        replaced["$ref"] = changed.get(ref, ref)
    return replaced


# --- version 3, for servers that have version 2 only


def convert_to_v3(piece: Json, info: Json) -> dict[str, Any]:
    """Returns a document of version 3 with the paths and definitions of a piece of version 2.

    References to parameters are replaced by what they refer to.
    """
    shared = {f"#/parameters/{name}": one for name, one in piece.get("parameters", {}).items()}
    return {
        "openapi": "3.0.0",
        "info": dict(info),
        "paths": {path: _path(item, shared) for path, item in piece["paths"].items()},
        "components": {
            "schemas": {name: _point_to_v3(item) for name, item in piece["definitions"].items()}
        },
    }


def _point_to_v3(value: Any) -> Any:
    if isinstance(value, list):
        return [_point_to_v3(item) for item in value]
    if not isinstance(value, dict):
        return value
    converted = {key: _point_to_v3(item) for key, item in value.items()}
    if isinstance(ref := value.get("$ref"), str):
        converted["$ref"] = ref.replace(_DEFINITION, _SCHEMA)
    return converted


def _path(item: Json, shared: Json) -> dict[str, Any]:
    converted: dict[str, Any] = {}
    for name, value in item.items():
        if name in _METHODS and isinstance(value, dict):
            converted[name] = _operation(value, shared)
        elif name == "parameters":
            structs = _structs(value, shared)
            converted[name] = [_parameter(one) for one in structs if one.get("in") != "body"]
        else:
            converted[name] = value
    return converted


def _structs(value: Any, shared: Json) -> list[Json]:
    """Returns a list of parameters, with those that are referred to by `$ref` themselves."""
    items = [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
    return [shared.get(str(item.get("$ref")), item) for item in items]


def _operation(operation: Json, shared: Json) -> dict[str, Any]:
    left_out = ("consumes", "produces", "schemes", "parameters", "responses")
    converted = {name: value for name, value in operation.items() if name not in left_out}
    parameters = _structs(operation.get("parameters"), shared)
    body = next((one for one in parameters if one.get("in") == "body"), None)
    others = [_parameter(one) for one in parameters if one.get("in") != "body"]
    if others:
        converted["parameters"] = others
    if body is not None:
        inputs = _texts(operation.get("consumes"))
        converted["requestBody"] = {"content": _content(body.get("schema"), inputs)}
    outputs = _texts(operation.get("produces"))
    responses = operation.get("responses")
    converted["responses"] = {
        code: {
            "description": response.get("description", ""),
            **({"content": _content(response["schema"], outputs)} if "schema" in response else {}),
        }
        for code, response in (responses.items() if isinstance(responses, dict) else ())
        if isinstance(response, dict)
    }
    return converted


def _texts(value: Any) -> list[str]:
    named = [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
    return named if named and named != ["*/*"] else [_JSON]


def _content(schema: Any, media: Iterable[str]) -> dict[str, Any]:
    return {name: {"schema": _point_to_v3(schema)} for name in media}


_OF_SCHEMA = ("type", "format", "uniqueItems", "items")


def _parameter(parameter: Json) -> dict[str, Any]:
    schema = {name: value for name, value in parameter.items() if name in _OF_SCHEMA}
    rest = {name: value for name, value in parameter.items() if name not in _OF_SCHEMA}
    return rest | {"schema": schema} if schema else rest
