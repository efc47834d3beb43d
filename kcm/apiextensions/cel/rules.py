"""x-kubernetes-validations: validation rules in CEL, which the official library evaluates.

All rules of one object have `BUDGET` seconds of CPU time together; upstream has a budget of steps
instead. A rule that may cost much is evaluated in a child process (`evaluator`), which can be
killed.

Departure: all rules are accepted and not checked if the library cannot be loaded, which
`find_unchecked` reports.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel, Kubernetes 1.33.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from kcm.api.custom.structural_schema import MISSING, Json, StructuralSchema
from kcm.apiextensions.cel import budget, expressions
from kcm.apiextensions.cel.lanes import Lanes
from kcm.apiextensions.cel.values import in_order_of, to_cel
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
    return list(_Checker().walk(schema, new, before, "", root=True))


def check_default(schema: StructuralSchema, value: Any, path: str) -> Faults:
    """Returns a fault for each rule that the default of a node of a schema breaks."""
    if not schema.has_rules or not expressions.available():
        return []
    return list(_Checker().walk(schema, value, value, path))


class _Checker:
    """Checks the rules of one object until the budget of CPU time is used up."""

    def __init__(self) -> None:
        self._left = BUDGET
        self._ended = False

    def walk(
        self, schema: StructuralSchema, new: Any, old: Any, path: str, *, root: bool = False
    ) -> Iterator[FieldError]:
        """Yields the faults of a value and of all values below it."""
        if new is None or self._ended:
            return
        if schema.rules:
            yield from self._rules(schema, (new, old), path, root)
        if isinstance(new, dict):
            before = old if isinstance(old, dict) else {}
            for name, value in new.items():
                if (inner := schema.field(name)) is not None:
                    where = f"{path}.{name}" if path else name
                    yield from self.walk(inner, value, before.get(name, MISSING), where)
        elif isinstance(new, list) and schema.items is not None:
            old_by_key = _by_key(old, schema)
            for index, value in enumerate(new):
                before_item = old_by_key.get(_key(value, schema), MISSING)
                yield from self.walk(schema.items, value, before_item, f"{path}[{index}]")

    def _rules(
        self,
        schema: StructuralSchema,
        values: tuple[Any, Any],
        path: str,
        root: bool,
    ) -> Iterator[FieldError]:
        began = time.thread_time()
        new, old = values
        variables = {"self": to_cel(new, schema, root=root)}
        if old is not MISSING:
            variables["oldSelf"] = to_cel(in_order_of(old, new, schema), schema, root=root)
        size = budget.size(variables)
        self._left -= time.thread_time() - began
        for rule in schema.rules:
            if not self._ended:
                yield from self._rule(rule, schema, variables, size, path, new=new)

    def _rule(
        self,
        rule: Json,
        schema: StructuralSchema,
        variables: dict[str, Any],
        size: tuple[int, int],
        path: str,
        *,
        new: Any,
    ) -> Iterator[FieldError]:
        text = str(rule.get("rule") or "")
        optional = bool(rule.get("optionalOldSelf"))
        given = dict(variables)
        if optional:
            given["oldSelfs"] = [given.pop("oldSelf")] if "oldSelf" in given else []
        elif "oldSelf" in text and "oldSelf" not in given:
            return  # a new value has no old state to compare with
        outcome = self._evaluate(text, given, size, optional)
        if outcome.unchecked or outcome.value is True:
            return
        if outcome.exhausted or outcome.error:
            yield invalid(path or "<nil>", schema.type, outcome.error or _EXHAUSTED)
            return
        detail = self._message(rule, text, given, size, optional)
        if self._ended:
            yield invalid(path or "<nil>", schema.type, detail)
            return
        where = path + str(rule.get("fieldPath") or "")
        where = (where if path else where.removeprefix(".")) or "<nil>"
        yield _broken(str(rule.get("reason") or ""), where, new, detail)

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


def _broken(reason: str, path: str, value: Any, detail: str) -> FieldError:
    """Returns the fault of a broken rule. Values are shown unless they are objects or lists."""
    kind = _TYPES.get(reason, "Invalid value")
    if kind == "Duplicate value":
        return duplicate(path, value)
    if kind == "Invalid value" and isinstance(value, dict | list):
        return invalid_without_value(path, detail)
    return FieldError(kind, path, value, detail)


def _by_key(old: Any, schema: StructuralSchema) -> dict[Any, Any]:
    """Returns the old items of a list by their keys, or {} for a list without keys.

    Items of other lists cannot be matched with their old state.
    """
    if schema.list_type != "map" or not isinstance(old, list):
        return {}
    return {_key(item, schema): item for item in old}


def _key(item: Any, schema: StructuralSchema) -> tuple[str, ...]:
    fields = item if isinstance(item, dict) else {}
    return tuple(repr(fields.get(name)) for name in schema.list_keys)


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
