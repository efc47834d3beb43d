"""Definitions of custom kinds as large as those of real monitoring stacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GROUP = "monitoring.example.com"
KINDS = ("Server", "Agent", "Ruler", "Monitor", "Rule")
_WORDS = "Says how a target is scraped, which labels it gets, and what is done where it fails. "


def _field(number: int) -> dict[str, Any]:
    """Returns the schema of one setting, with a description as long as real ones are."""
    about = f"Setting {number}. {_WORDS * (2 + number % 5)}"
    match number % 6:
        case 0:
            return {"type": "string", "pattern": "^[a-z0-9:/._-]*$", "description": about}
        case 1:
            return {"type": "integer", "format": "int32", "minimum": 0, "description": about}
        case 2:
            return {"type": "array", "items": {"type": "string"}, "description": about}
        case 3:
            named = {"type": "object", "required": ["name"], "properties": {}}
            named["properties"] = {"name": {"type": "string"}, "key": {"type": "string"}}
            keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
            return {"type": "array", "items": named, "description": about, **keys}
        case 4:
            quantity = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
            return {**quantity, "x-kubernetes-int-or-string": True, "description": about}
    return {"type": "object", "additionalProperties": {"type": "string"}, "description": about}


def _section(fields: int, depth: int) -> dict[str, Any]:
    """Returns the schema of a section with so many fields, and such sections below it."""
    properties = {f"setting{number}": _field(number) for number in range(fields)}
    if depth:
        properties |= {f"section{letter}": _section(fields, depth - 1) for letter in "abc"}
    return {"type": "object", "properties": properties, "description": _WORDS}


def definition(kind: str, *, fields: int = 20, depth: int = 3) -> dict[str, Any]:
    """Returns a definition; the defaults make one of some 380 kB."""
    plural = f"{kind.lower()}s"
    spec = _section(fields, depth)
    # Beside the sections, what the tests write is kept as it is.
    spec |= {"x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": spec}, "required": ["spec"]}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": names | {"categories": ["monitoring"]},
            "versions": [version | {"schema": {"openAPIV3Schema": schema}}],
        },
    }


def write_definitions(folder: Path) -> int:
    """Writes the definitions of all kinds, a file each; returns their size in bytes."""
    folder.mkdir()
    for kind in KINDS:
        (folder / f"{kind.lower()}s.json").write_text(json.dumps(definition(kind)))
    return sum(file.stat().st_size for file in folder.iterdir())
