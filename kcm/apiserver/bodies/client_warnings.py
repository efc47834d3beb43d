"""Warnings that come with what a client writes, and what is dropped of it."""

from __future__ import annotations

from typing import Any

from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.custom_kinds import CustomObject
from kcm.api.scheme import Resource
from kcm.api.structural_schema import parse
from kcm.apiextensions import pruning, structural
from kcm.apiextensions.cel import rules
from kcm.apimachinery.meta_v1 import KubeObject

NO_PROTOBUF = (
    "the body of the request was in an unknown format - accepted media types include: "
    "application/json, application/yaml, application/apply-patch+yaml"
)


def of(obj: KubeObject) -> list[str]:
    """What the sender of an object should know."""
    return _of_definition(obj) if isinstance(obj, CustomResourceDefinition) else []


def _of_definition(definition: CustomResourceDefinition) -> list[str]:
    found: list[str] = []
    conversion = definition.spec.conversion
    if conversion is not None and conversion.strategy == "Webhook":
        found.append("spec.conversion: webhooks are not called: versions differ in apiVersion only")
    for index, version in enumerate(definition.spec.versions):
        schema = (version.schema_ or {}).get("openAPIV3Schema")
        if not isinstance(schema, dict) or structural.check(schema, ""):
            continue  # it will be refused
        missing = rules.unchecked(parse(schema))
        found += [
            f"spec.versions[{index}].schema: rules are stored and not checked: {what} is not "
            "available here"
            for what in sorted(missing)
        ]
    return found


def pruned_body(body: dict[str, Any], resource: Resource) -> dict[str, Any]:
    """As `pruned`, for an object's JSON."""
    if resource.custom is None:
        return body
    return pruning.root(body, resource.custom.schema)


def pruned(obj: KubeObject) -> KubeObject:
    """The object without what its schema does not name: nobody is to own that."""
    if not isinstance(obj, CustomObject):
        return obj
    return obj.with_content(pruning.root(obj.content, obj.custom.schema))
