"""x-kubernetes-validations: validation rules in CEL, which the official library evaluates.

All rules of one object have `BUDGET` seconds of CPU time together; upstream has a budget of steps
instead. A rule that may cost much is evaluated in a child process (`evaluator`), which can be
killed.

Departure: all rules are accepted and not checked if the library cannot be loaded, which
`find_unchecked` reports.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel, Kubernetes 1.36.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kcm.api.custom.structural_schema import MISSING, Json, StructuralSchema
from kcm.apiextensions import ratcheting
from kcm.apiextensions.cel import budget, expressions
from kcm.apiextensions.cel.lanes import Lanes
from kcm.apiextensions.cel.values import in_order_of, to_cel
from kcm.apiextensions.ratcheting import is_unchanged
from kcm.apimachinery.field_errors import Faults, duplicate, invalid, invalid_without_value
from kcm.errors import FieldError

_BLOCKING = frozenset({"Unsupported value", "Required value", "Too long", "Too many"})
_TYPES = {
    "FieldValueInvalid": "Invalid value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
}
BUDGET = 1.0  # seconds of CPU for all rules of one object
_MAX_MESSAGE = 5 * 1024  # the most bytes of a messageExpression's result
_OUT_OF_BUDGET = "failed due to running out of cost budget, no further validation rules will be run"
_EXHAUSTED = f"validation {_OUT_OF_BUDGET}"
_LANES = Lanes()
_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; correct the "
    "existing errors to complete validation"
)


def check(schema: StructuralSchema, new: Any, old: Any, faults: Faults) -> Faults:
    """Returns a fault for each rule that an object breaks.

    `old` is the object before the change, None for a create. `faults` are those found before: after
    some types of them, rules are not checked.
    """
    if not schema.has_rules or not expressions.available():
        return []
    if any(f.type in _BLOCKING or "must be of type" in f.detail for f in faults):
        return [invalid("<nil>", None, _NOT_CHECKED)]
    before = MISSING if old is None else old
    return list(_Checker(is_ratcheting=True).walk(_Node(schema, new, before, "", is_root=True)))


def check_default(schema: StructuralSchema, value: Any, path: str) -> Faults:
    """Returns a fault for each rule that the default of a node of a schema breaks."""
    if not schema.has_rules or not expressions.available():
        return []
    return list(_Checker(is_ratcheting=False).walk(_Node(schema, value, value, path)))


@dataclass(frozen=True)
class _Node:
    """A value, and its schema. `old` is the value before the change, MISSING if there is none that
    it can be compared with. `nearest` is the innermost value around it that has an old one.
    """

    schema: StructuralSchema
    new: Any
    old: Any
    path: str
    is_root: bool = False
    nearest: _Node | None = None

    def below(self, schema: StructuralSchema, new: Any, old: Any, path: str) -> _Node:
        """Returns a value in this one."""
        nearest = self.nearest if self.old is MISSING else self
        return _Node(schema, new, MISSING if old is None else old, path, nearest=nearest)

    def is_unchanged(self) -> bool:
        """Reports whether this value, or one around it, is as it was. The root never is, since its
        metadata is not.
        """
        node = self.nearest if self.old is MISSING else self
        if node is None or node.is_root:
            return False
        return is_unchanged(node.new, in_order_of(node.old, node.new, node.schema))


class _Checker:
    """Checks the rules of one object until the budget of CPU time is used up.

    When it is ratcheting, values that have not changed may break rules that do not ask for the
    change itself.
    """

    def __init__(self, *, is_ratcheting: bool) -> None:
        self._is_ratcheting = is_ratcheting
        self._left = BUDGET
        self._ended = False

    def walk(self, node: _Node) -> Iterator[FieldError]:
        """Yields the faults of a value and of all values below it."""
        schema, new, path = node.schema, node.new, node.path
        if new is None or self._ended:
            return
        if schema.rules:
            yield from self._rules(node)
        if isinstance(new, dict):
            for name, value in new.items():
                if (inner := schema.field(name)) is None or not inner.has_rules:
                    continue
                before = ratcheting.find_field(node.old, name)
                where = f"{path}.{name}" if path else name
                if name not in schema.properties:
                    where = f"{path}[{name}]"
                yield from self.walk(node.below(inner, value, before, where))
        elif isinstance(new, list) and schema.items is not None and schema.items.has_rules:
            keys = schema.list_keys if schema.list_type == "map" else ()
            old_by_key = ratcheting.index_items(node.old, keys)
            for index, value in enumerate(new):
                before = old_by_key.get(ratcheting.key_of(value, keys), MISSING)
                yield from self.walk(node.below(schema.items, value, before, f"{path}[{index}]"))

    def _rules(self, node: _Node) -> Iterator[FieldError]:
        began = time.thread_time()
        schema, new, root = node.schema, node.new, node.is_root
        variables = {"self": to_cel(new, schema, root=root)}
        if node.old is not MISSING:
            variables["oldSelf"] = to_cel(in_order_of(node.old, new, schema), schema, root=root)
        size = budget.size(variables)
        self._left -= time.thread_time() - began
        for rule in schema.rules:
            if not self._ended:
                yield from self._rule(rule, node, variables, size)

    def _rule(
        self, rule: Json, node: _Node, variables: dict[str, Any], size: tuple[int, int]
    ) -> Iterator[FieldError]:
        schema, path = node.schema, node.path
        text = str(rule.get("rule") or "")
        optional = bool(rule.get("optionalOldSelf"))
        given = dict(variables)
        is_transition = "oldSelf" in text
        if optional:
            given["oldSelfs"] = [given.pop("oldSelf")] if "oldSelf" in given else []
        elif is_transition and "oldSelf" not in given:
            return  # a new value has no old state to compare with
        outcome = self._evaluate(text, given, size, optional)
        if outcome.unchecked or outcome.value is True:
            return
        if outcome.exhausted or outcome.error:
            detail = _explain(outcome.error, rule) if outcome.error else _EXHAUSTED
            self._ended = self._ended or outcome.error == expressions.TOO_COSTLY
            yield invalid(path or "<nil>", schema.type, detail)
            return
        if not is_transition and self._is_kept(node):
            return
        detail = self._message(rule, text, given, size, optional)
        if self._ended:
            yield invalid(path or "<nil>", schema.type, detail)
            return
        where = path + str(rule.get("fieldPath") or "")
        where = (where if path else where.removeprefix(".")) or "<nil>"
        yield _broken(str(rule.get("reason") or ""), where, node.new, detail)

    def _is_kept(self, node: _Node) -> bool:
        """Reports whether a value may break a rule, since it has not changed. This takes from the
        budget, too.
        """
        began = time.thread_time()
        is_kept = self._is_ratcheting and node.is_unchanged()
        self._left -= time.thread_time() - began
        return is_kept

    def _message(
        self,
        rule: Json,
        text: str,
        variables: dict[str, Any],
        size: tuple[int, int],
        optional: bool,
    ) -> str:
        if rule.get("messageExpression"):
            expression = str(rule["messageExpression"])
            outcome = self._evaluate(expression, variables, size, optional)
            if outcome.exhausted:
                return f"messageExpression evaluation {_OUT_OF_BUDGET}"
            message = outcome.value.strip() if isinstance(outcome.value, str) else ""
            if message and "\n" not in message and len(message.encode()) <= _MAX_MESSAGE:
                return message
        return str(rule.get("message") or f"failed rule: {text.strip()}")

    def _evaluate(
        self, text: str, variables: dict[str, Any], size: tuple[int, int], optional: bool
    ) -> expressions.ExpressionResult:
        outcome = expressions.EXHAUSTED
        if self._left > 0:
            length, _ = size
            is_small = budget.estimate(text, *size) <= budget.SMALL
            if is_small and not _LANES.is_slow(text, length):
                outcome = expressions.evaluate(text, variables, optional_old=optional)
                _LANES.note(text, length, outcome)
            else:
                outcome = _LANES.evaluate(
                    text, variables, length, self._left, optional_old=optional
                )
            self._left -= outcome.spent
        self._ended = self._ended or outcome.exhausted
        return outcome


def _explain(error: str, rule: Json) -> str:
    """Returns why a rule could not be evaluated, in upstream's words."""
    if error.startswith(expressions.COMPILE_ERROR):
        return error
    shown = str(rule.get("message") or rule.get("rule") or "").strip()
    if error == expressions.TOO_COSTLY:
        return (
            f"'{error}': no further validation rules will be run due to call cost exceeds limit "
            f"for rule: {shown}"
        )
    if error == expressions.NO_OVERLOAD:
        return (
            f"'{error}': call arguments did not match a supported operator, function or macro "
            f"signature for rule: {shown}"
        )
    return f"{error} evaluating rule: {shown}"


def _broken(reason: str, path: str, value: Any, detail: str) -> FieldError:
    """Returns the fault of a broken rule. Values are shown unless they are objects or lists."""
    kind = _TYPES.get(reason, "Invalid value")
    if kind == "Duplicate value":
        return duplicate(path, value)
    if kind == "Invalid value" and isinstance(value, dict | list):
        return invalid_without_value(path, detail)
    return FieldError(kind, path, value, detail)


def find_unchecked(schema: StructuralSchema) -> set[str]:
    """Returns what the rules of a schema need and is not there: the library, or nothing."""
    expressions_of_rules = {
        expressions.compile_expression(
            str(rule.get("rule") or ""), bool(rule.get("optionalOldSelf"))
        )
        for rule in schema.rules
    }
    missing = {name.unsupported for name in expressions_of_rules if name.unsupported}
    for inner in schema.inner():
        missing |= find_unchecked(inner)
    return missing
