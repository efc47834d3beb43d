"""OpenAPI documents of other servers: what is taken from them, and how it joins our own.

Source: pkg/aggregator and pkg/openapiconv in k8s.io/kube-openapi, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]

_DEFINITION, _SCHEMA = "#/definitions/", "#/components/schemas/"
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
_JSON = "application/json"


def select_paths(document: Any, prefix: str) -> dict[str, Any]:
    """Returns the paths of a document of version 2 that begin with `prefix`, and the definitions
    that they refer to.

    Raises ValueError if this is no such document.
    """
    if not isinstance(document, dict):
        raise ValueError("the document is no object")
    paths = _objects(document.get("paths"), "paths")
    definitions = _objects(document.get("definitions") or {}, "definitions")
    chosen = {path: item for path, item in paths.items() if path.startswith(prefix)}
    wanted = list(_list_refs(chosen.values()))
    found: dict[str, Any] = {}
    while wanted:
        name = wanted.pop()
        if name in definitions and name not in found:
            found[name] = definitions[name]
            wanted += _list_refs([definitions[name]])
    return {"paths": chosen, "definitions": found}


def _objects(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(item, dict) for item in value.values()):
        raise ValueError(f"{what} of the document are no objects")
    return value


def _list_refs(values: Iterable[Any]) -> Iterator[str]:
    """Yields the names of the definitions that are referred to anywhere in the values."""
    stack = list(values)
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            ref = value.get("$ref")
            if isinstance(ref, str):
                yield ref.removeprefix(_DEFINITION)
            stack += value.values()
        elif isinstance(value, list):
            stack += value


def merge(own: dict[str, Any], pieces: Iterable[Json]) -> dict[str, Any]:
    """Returns a document of version 2 with the paths and definitions of the pieces added.

    A path that is there already stays. A definition whose name another one has gets a new name.
    """
    paths, definitions = dict(own["paths"]), dict(own["definitions"])
    for piece in pieces:
        names = {
            name: _free_name(definitions, name, schema)
            for name, schema in piece["definitions"].items()
        }
        rename = _renaming(names)
        for name, schema in piece["definitions"].items():
            if names[name] not in definitions:
                definitions[names[name]] = rename(schema)
        for path, item in piece["paths"].items():
            paths.setdefault(path, rename(item))
    return own | {"paths": paths, "definitions": definitions}


def _free_name(definitions: Json, name: str, schema: Any) -> str:
    candidate, number = name, 1
    while candidate in definitions and definitions[candidate] != schema:
        number += 1
        candidate = f"{name}_v{number}"
    return candidate


def _renaming(names: Mapping[str, str]) -> Callable[[Any], Any]:
    """Returns a function that gives references to definitions their new names."""
    changed = {_DEFINITION + old: _DEFINITION + new for old, new in names.items() if old != new}
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
    """Returns a document of version 3 with the paths and definitions of a piece of version 2."""
    return {
        "openapi": "3.0.0",
        "info": dict(info),
        "paths": {path: _path(item) for path, item in piece["paths"].items()},
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


def _path(item: Json) -> dict[str, Any]:
    converted: dict[str, Any] = {}
    for name, value in item.items():
        if name in _METHODS and isinstance(value, dict):
            converted[name] = _operation(value)
        elif name == "parameters":
            converted[name] = [
                _parameter(one) for one in _structs(value) if one.get("in") != "body"
            ]
        else:
            converted[name] = value
    return converted


def _structs(value: Any) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _operation(operation: Json) -> dict[str, Any]:
    left_out = ("consumes", "produces", "schemes", "parameters", "responses")
    converted = {name: value for name, value in operation.items() if name not in left_out}
    parameters = _structs(operation.get("parameters"))
    body = next((one for one in parameters if one.get("in") == "body"), None)
    converted["parameters"] = [_parameter(one) for one in parameters if one.get("in") != "body"]
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
