"""Checks the rules in a definition's schema (x-kubernetes-validations), types and costs included.

Source: ValidateCustomResourceDefinitionOpenAPISchema in
staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go,
Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kcm.api.custom.structural_schema import Json, StructuralSchema
from kcm.apiextensions import field_paths
from kcm.apiextensions.cel.costs.sizes import multiply
from kcm.apiextensions.cel.rule_types import RuleTypes
from kcm.apiextensions.schemas import rule_budget
from kcm.apiextensions.schemas.rule_budget import RuleBudget
from kcm.apimachinery.field_errors import invalid, not_supported, required
from kcm.errors import FieldError

_OF_EXPRESSIONS = {
    "rule": ("BOOL", "cel expression must evaluate to a bool"),
    "messageExpression": ("STRING", "messageExpression must evaluate to a string"),
}  # their types
_REASONS = (
    "FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate",
)  # fmt: skip


@dataclass(frozen=True)
class _Place:
    """A node of a schema with the path to it, and how often its values can be in an object."""

    node: StructuralSchema
    path: str
    limit: int | None  # as in `rule_budget.limit_of`

    def inner(self) -> Iterator[_Place]:
        """Yields the places directly below."""
        node, limit = self.node, rule_budget.limit_of(self.node, self.limit)
        for name, inner in node.properties.items():
            yield _Place(inner, f"{self.path}.properties[{name}]", limit)
        if node.additional is not None:
            yield _Place(node.additional, f"{self.path}.additionalProperties", limit)
        if node.items is not None:
            yield _Place(node.items, f"{self.path}.items", limit)


class _Checker:
    """Checks the rules of one schema."""

    def __init__(self, schema: StructuralSchema) -> None:
        self._types = RuleTypes(schema)
        self._budget = RuleBudget()

    def check(self, place: _Place) -> Iterator[FieldError]:
        yield from self._check_node(place)
        yield from self._budget.close(place.path)

    def _check_node(self, place: _Place) -> Iterator[FieldError]:
        for index, rule in enumerate(place.node.rules):
            path = f"{place.path}.x-kubernetes-validations[{index}]"
            if not str(rule.get("rule") or "").strip():
                yield required(f"{path}.rule", "rule is not specified")
                continue
            yield from self._check_expressions(rule, path, place)
            yield from _check_rule(rule, path, place.node)
        for inner in place.inner():
            yield from self._check_node(inner)

    def _check_expressions(self, rule: Json, path: str, place: _Place) -> Iterator[FieldError]:
        node = place.node
        for name, (wanted, why) in _OF_EXPRESSIONS.items():
            if not rule.get(name):
                continue
            old = bool(rule.get("optionalOldSelf"))
            checked = self._types.find(str(rule[name]), node, optional_old=old)
            where, cost = f"{path}.{name}", checked.cost
            if name == "rule":  # a message is made once
                times = rule_budget.most_often(self._types.described(node), place.limit)
                cost = multiply(cost, times)
            if checked.error:
                yield invalid(where, rule[name], f"compilation failed: {checked.error}")
            elif checked.type not in (wanted, "DYN"):
                yield invalid(where, rule[name], why)
            else:
                yield from self._budget.spend(cost, where, name)


def check(schema: StructuralSchema, path: str) -> Iterator[FieldError]:
    """Yields what is wrong with the rules of a schema in which nothing else is wrong."""
    if schema.has_rules:
        yield from _Checker(schema).check(_Place(schema, path, 1))


def _check_rule(rule: Json, path: str, node: StructuralSchema) -> Iterator[FieldError]:
    text = str(rule.get("rule") or "")
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
