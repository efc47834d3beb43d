"""x-kubernetes-validations: rules in CEL, evaluated by the official library.

All rules of an object have one second of CPU together, which is what upstream's budget is
made for; upstream counts steps. A rule that may cost much is evaluated in another process
(`evaluator`), where it can be cut.

Does not guarantee upstream's limits on what a rule may cost at worst, which it checks when
a definition is written. A rule that uses a function
of Kubernetes' own which is not here (`UNSUPPORTED`) is accepted and not checked; so are
all where the library cannot be loaded. `unchecked` tells of both.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel, Kubernetes 1.33.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from kcm.api.structural_schema import MISSING, Json, Schema
from kcm.apiextensions.cel import budget, expressions
from kcm.apiextensions.cel.evaluator import Evaluator
from kcm.apiextensions.cel.values import to_cel
from kcm.apimachinery.field_errors import Faults, invalid
from kcm.errors import FieldError

_BLOCKING = frozenset({"Unsupported value", "Required value", "Too long", "Too many"})
_TYPES = {
    "FieldValueInvalid": "Invalid value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
}
BUDGET = 1.0  # seconds of CPU for all rules of one object
_MAX_MESSAGE = 5 * 1024  # bytes that a messageExpression may come to
_OUT_OF_BUDGET = "failed due to running out of cost budget, no further validation rules will be run"
_EXHAUSTED = f"validation {_OUT_OF_BUDGET}"
_EVALUATOR = Evaluator()
_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; correct the "
    "existing errors to complete validation"
)


def check(schema: Schema, new: Any, old: Any, faults: Faults) -> Faults:
    """The rules that an object breaks; `old` is None at its creation."""
    if not has_rules(schema) or not expressions.available():
        return []
    if any(f.type in _BLOCKING or "must be of type" in f.detail for f in faults):
        return [invalid("<nil>", None, _NOT_CHECKED)]
    before = MISSING if old is None else old
    return list(_Checker().walk(schema, new, before, "", root=True))


def has_rules(schema: Schema) -> bool:
    """Whether a schema has rules anywhere."""
    return bool(rules_of(schema)) or any(has_rules(inner) for inner in _below(schema))


def _below(schema: Schema) -> Iterator[Schema]:
    yield from schema.properties.values()
    for inner in (schema.items, schema.additional):
        if inner is not None:
            yield inner


def rules_of(schema: Schema) -> list[Json]:
    """The rules of one node."""
    return list(schema.raw.get("x-kubernetes-validations") or ())


class _Checker:
    """One object's check: walks it until its seconds are spent."""

    def __init__(self) -> None:
        self._left = BUDGET
        self._ended = False

    def walk(
        self, schema: Schema, new: Any, old: Any, path: str, *, root: bool = False
    ) -> Iterator[FieldError]:
        if new is None or self._ended:
            return
        if found := rules_of(schema):
            yield from self._rules(found, schema, (new, old), path, root)
        if isinstance(new, dict):
            before = old if isinstance(old, dict) else {}
            for name, value in new.items():
                if (inner := schema.field(name)) is not None:
                    where = f"{path}.{name}" if path else name
                    yield from self.walk(inner, value, before.get(name, MISSING), where)
        elif isinstance(new, list) and schema.items is not None:
            known = _by_key(old, schema)
            for index, value in enumerate(new):
                before_item = known.get(_key(value, schema), MISSING)
                yield from self.walk(schema.items, value, before_item, f"{path}[{index}]")

    def _rules(
        self, found: list[Json], schema: Schema, values: tuple[Any, Any], path: str, root: bool
    ) -> Iterator[FieldError]:
        began = time.thread_time()
        new, old = values
        variables = {"self": to_cel(new, schema, root=root)}
        if old is not MISSING:
            variables["oldSelf"] = to_cel(old, schema, root=root)
        size = budget.size(variables)
        self._left -= time.thread_time() - began
        for rule in found:
            if not self._ended:
                yield from self._rule(rule, schema, variables, size, path)

    def _rule(
        self,
        rule: Json,
        schema: Schema,
        variables: dict[str, Any],
        size: tuple[int, int],
        path: str,
    ) -> Iterator[FieldError]:
        text = str(rule.get("rule") or "")
        optional = bool(rule.get("optionalOldSelf"))
        given = dict(variables)
        if optional:
            given["oldSelfs"] = [given.pop("oldSelf")] if "oldSelf" in given else []
        elif "oldSelf" in text and "oldSelf" not in given:
            return  # what was not there before cannot have changed
        outcome = self._evaluated(text, given, size, optional)
        if outcome.unchecked or outcome.value is True:
            return
        if outcome.exhausted:
            detail = _EXHAUSTED
        else:
            detail = outcome.error or self._message(rule, text, given, size, optional)
        where = path + str(rule.get("fieldPath") or "")
        where = where if path else where.removeprefix(".")
        kind = _TYPES.get(str(rule.get("reason") or ""), "Invalid value")
        if outcome.exhausted:
            where, kind = path, "Invalid value"
        yield FieldError(kind, where or "<nil>", schema.type or "object", detail)

    def _message(
        self,
        rule: Json,
        text: str,
        variables: dict[str, Any],
        size: tuple[int, int],
        optional: bool,
    ) -> str:
        if rule.get("messageExpression"):
            told = str(rule["messageExpression"])
            outcome = self._evaluated(told, variables, size, optional)
            if outcome.exhausted:
                return f"messageExpression evaluation {_OUT_OF_BUDGET}"
            found = outcome.value.strip() if isinstance(outcome.value, str) else ""
            if found and "\n" not in found and len(found.encode()) <= _MAX_MESSAGE:
                return found
        return str(rule.get("message") or f"failed rule: {text.strip()}")

    def _evaluated(
        self, text: str, variables: dict[str, Any], size: tuple[int, int], optional: bool
    ) -> expressions.Outcome:
        outcome = expressions.EXHAUSTED
        if self._left > 0:
            if budget.estimate(text, *size) <= budget.SMALL:
                outcome = expressions.evaluate(text, variables, optional_old=optional)
            else:
                outcome = _EVALUATOR.evaluate(text, variables, self._left, optional_old=optional)
            self._left -= outcome.spent
        self._ended = self._ended or outcome.exhausted
        return outcome


def _by_key(old: Any, schema: Schema) -> dict[Any, Any]:
    """Only the items of a list with keys are known to be the same as before."""
    if schema.list_type != "map" or not isinstance(old, list):
        return {}
    return {_key(item, schema): item for item in old}


def _key(item: Any, schema: Schema) -> tuple[str, ...]:
    found = item if isinstance(item, dict) else {}
    return tuple(repr(found.get(name)) for name in schema.list_keys)


def unchecked(schema: Schema) -> set[str]:
    """What rules of a schema need that is not here."""
    found = {
        expressions.compiled(str(rule.get("rule") or ""), bool(rule.get("optionalOldSelf")))
        for rule in rules_of(schema)
    }
    missing = {one.unsupported for one in found if one.unsupported}
    for inner in _below(schema):
        missing |= unchecked(inner)
    return missing
