"""Definitions and schemas that the tests of custom kinds share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kcm.api import codec
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.custom.structural_schema import StructuralSchema, parse
from kcm.api.scheme import BUILT_IN, Scheme
from kcm.apiextensions import conditions
from kcm.apiextensions.registration import register, unregister
from kcm.kinds import defaults
from kcm.testing.builders import START

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
SCHEME = Scheme()


def struct(**properties: Any) -> dict[str, Any]:
    """Returns the schema of an object."""
    return {"type": "object", "properties": properties}


def schema(**properties: Any) -> StructuralSchema:
    """Returns a parsed schema."""
    return parse(struct(**properties))


def definition(
    name: str = "crontabs", kind: str = "CronTab", **versions: dict[str, Any]
) -> CustomResourceDefinition:
    """Returns a definition in the group example.com, whose first version is the storage version."""
    schemas = versions or {"v1": struct(spec=struct(replicas=WHOLE))}
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{name}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": name, "kind": kind, "shortNames": [name[:2]]},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": number == 0,
                    "schema": {"openAPIV3Schema": inner},
                    "subresources": {"status": {}},
                }
                for number, (version, inner) in enumerate(schemas.items())
            ],
        },
    }
    decoded = defaults.apply(codec.decode(body, BUILT_IN))
    assert isinstance(decoded, CustomResourceDefinition)
    return decoded


def accept_names(definition: CustomResourceDefinition) -> CustomResourceDefinition:
    """Returns the definition with its names accepted."""
    return conditions.settle(definition, [], START)


@contextmanager
def serve(definition: CustomResourceDefinition) -> Iterator[None]:
    """Registers the kind of the definition in SCHEME while the context lasts."""
    register(SCHEME, accept_names(definition))
    try:
        yield
    finally:
        unregister(SCHEME, definition.name)
