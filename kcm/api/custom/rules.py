"""x-kubernetes-validations: rules in CEL, evaluated by the official library.

Does not guarantee upstream's limits on the cost of a rule. A rule that uses a function
of Kubernetes' own which is not here (`UNSUPPORTED`) is accepted and not checked; so are
all where the library cannot be loaded. `unchecked` tells of both.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kcm.api.custom import expressions
from kcm.api.custom.schema import MISSING, Json, Schema
from kcm.api.custom.values import to_cel
from kcm.api.validation.report import Faults, invalid
from kcm.errors import FieldError

_BLOCKING = frozenset({"Unsupported value", "Required value", "Too long", "Too many"})
_TYPES = {
    "FieldValueInvalid": "Invalid value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
}
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
    return list(_walk(schema, new, before, "", root=True))


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


def _walk(
    schema: Schema, new: Any, old: Any, path: str, *, root: bool = False
) -> Iterator[FieldError]:
    if new is None:
        return
    if found := rules_of(schema):
        variables = {"self": to_cel(new, schema, root=root)}
        if old is not MISSING:
            variables["oldSelf"] = to_cel(old, schema, root=root)
        for rule in found:
            yield from _rule(rule, schema, variables, path)
    if isinstance(new, dict):
        before = old if isinstance(old, dict) else {}
        for name, value in new.items():
            if (inner := schema.field(name)) is not None:
                where = f"{path}.{name}" if path else name
                yield from _walk(inner, value, before.get(name, MISSING), where)
    elif isinstance(new, list) and schema.items is not None:
        known = _by_key(old, schema)
        for index, value in enumerate(new):
            before_item = known.get(_key(value, schema), MISSING)
            yield from _walk(schema.items, value, before_item, f"{path}[{index}]")


def _by_key(old: Any, schema: Schema) -> dict[Any, Any]:
    """Only the items of a list with keys are known to be the same as before."""
    if schema.list_type != "map" or not isinstance(old, list):
        return {}
    return {_key(item, schema): item for item in old}


def _key(item: Any, schema: Schema) -> tuple[str, ...]:
    found = item if isinstance(item, dict) else {}
    return tuple(repr(found.get(name)) for name in schema.list_keys)


def _rule(rule: Json, schema: Schema, variables: dict[str, Any], path: str) -> Iterator[FieldError]:
    text = str(rule.get("rule") or "")
    optional = bool(rule.get("optionalOldSelf"))
    given = dict(variables)
    if optional:
        given["oldSelfs"] = [given.pop("oldSelf")] if "oldSelf" in given else []
    elif "oldSelf" in text and "oldSelf" not in given:
        return  # what was not there before cannot have changed
    outcome = expressions.evaluate(text, given, optional_old=optional)
    if outcome.unchecked or outcome.value is True:
        return
    detail = outcome.error or _message(rule, text, given, optional)
    where = path + str(rule.get("fieldPath") or "")
    where = where if path else where.removeprefix(".")
    kind = _TYPES.get(str(rule.get("reason") or ""), "Invalid value")
    yield FieldError(kind, where or "<nil>", schema.type or "object", detail)


def _message(rule: Json, text: str, variables: dict[str, Any], optional: bool) -> str:
    if rule.get("messageExpression"):
        told = str(rule["messageExpression"])
        found = expressions.evaluate(told, variables, optional_old=optional).value
        if isinstance(found, str) and found.strip() and "\n" not in found:
            return found.strip()
    return str(rule.get("message") or f"failed rule: {text.strip()}")


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
