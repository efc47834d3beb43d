"""Checks the rules in a definition's schema (x-kubernetes-validations), types included.

Source: ValidateCustomResourceDefinitionOpenAPISchema in
staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go,
Kubernetes 1.36. Departure: the costs of rules are not estimated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kcm.api.custom.structural_schema import StructuralSchema
from kcm.apiextensions import field_paths
from kcm.apiextensions.cel.type_checking import find_rule_type
from kcm.apimachinery.field_errors import invalid, not_supported, required
from kcm.errors import FieldError

_OF_EXPRESSIONS = {
    "rule": ("BOOL", "cel expression must evaluate to a bool"),
    "messageExpression": ("STRING", "messageExpression must evaluate to a string"),
}  # their types
_REASONS = (
    "FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate",
)  # fmt: skip


def check(rule: Any, path: str, node: StructuralSchema, *, root: bool) -> Iterator[FieldError]:
    """Yields what is wrong with a rule of a node of a schema. `root` says that it is the root."""
    text = str(rule.get("rule") or "")
    if not text.strip():
        yield required(f"{path}.rule", "rule is not specified")
        return
    for name, (wanted, why) in _OF_EXPRESSIONS.items():
        if rule.get(name):
            given, error = find_rule_type(
                str(rule[name]), node, root=root, optional_old=bool(rule.get("optionalOldSelf"))
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
