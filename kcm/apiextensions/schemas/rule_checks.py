"""Checks the rules in a definition's schema (x-kubernetes-validations), types included.

Source: ValidateCustomResourceDefinitionOpenAPISchema in
staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go,
Kubernetes 1.36. Departure: the costs of rules are not estimated.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcm.api.custom.structural_schema import Json, StructuralSchema
from kcm.apiextensions import field_paths
from kcm.apiextensions.cel.rule_types import RuleTypes
from kcm.apimachinery.field_errors import invalid, not_supported, required
from kcm.errors import FieldError

_OF_EXPRESSIONS = {
    "rule": ("BOOL", "cel expression must evaluate to a bool"),
    "messageExpression": ("STRING", "messageExpression must evaluate to a string"),
}  # their types
_REASONS = (
    "FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate",
)  # fmt: skip


def check(schema: StructuralSchema, path: str) -> Iterator[FieldError]:
    """Yields what is wrong with the rules of a schema in which nothing else is wrong."""
    if schema.has_rules:
        yield from _check_node(schema, path, RuleTypes(schema))


def _check_node(schema: StructuralSchema, path: str, types: RuleTypes) -> Iterator[FieldError]:
    for index, rule in enumerate(schema.rules):
        yield from _check_rule(rule, f"{path}.x-kubernetes-validations[{index}]", schema, types)
    for name, inner in schema.properties.items():
        yield from _check_node(inner, f"{path}.properties[{name}]", types)
    if schema.additional is not None:
        yield from _check_node(schema.additional, f"{path}.additionalProperties", types)
    if schema.items is not None:
        yield from _check_node(schema.items, f"{path}.items", types)


def _check_rule(
    rule: Json, path: str, node: StructuralSchema, types: RuleTypes
) -> Iterator[FieldError]:
    text = str(rule.get("rule") or "")
    if not text.strip():
        yield required(f"{path}.rule", "rule is not specified")
        return
    for name, (wanted, why) in _OF_EXPRESSIONS.items():
        if rule.get(name):
            given, error = types.find(
                str(rule[name]), node, optional_old=bool(rule.get("optionalOldSelf"))
            )
            if error:
                yield invalid(f"{path}.{name}", rule[name], f"compilation failed: {error}")
            elif given not in (wanted, "DYN"):
                yield invalid(f"{path}.{name}", rule[name], why)
    message = rule.get("message")
    if message and "\n" in message:
        yield invalid(f"{path}.message", message, "message must not contain line breaks")
    if "\n" in text.strip() and not message and not rule.get("messageExpression"):
        yield required(f"{path}.message", "message must be specified if rule contains line breaks")
    reason = rule.get("reason")
    if reason and reason not in _REASONS:
        yield not_supported(f"{path}.reason", reason, _REASONS)
    yield from _field_path(str(rule.get("fieldPath") or ""), f"{path}.fieldPath", node)


def _field_path(text: str, path: str, node: StructuralSchema) -> Iterator[FieldError]:
    if not text:
        return
    if not text.strip():
        yield invalid(path, text, "must be non-empty if specified")
    if "\n" in text or "\r" in text:
        yield invalid(path, text, "must not contain line breaks")
    try:
        field_paths.follow(text, node.raw, arrays=True)
    except field_paths.WrongPathError:
        yield invalid(path, text, "must be a valid path")
