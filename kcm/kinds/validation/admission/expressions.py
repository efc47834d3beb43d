"""Validation of the CEL expressions of policies and webhooks.

Source: pkg/apis/admissionregistration/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from kcm.api.admissionregistration_v1 import MatchCondition
from kcm.apiextensions.cel.policy_programs import Scope, compile_expression, spell
from kcm.apiextensions.cel.type_checking import find_type
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    Faults,
    duplicate,
    invalid,
    invalid_all,
    required,
    too_many,
)

BOOL, STRING, NULL = "BOOL", "STRING", "NULL"  # types of values
_TYPE_WORDS = {BOOL: "bool", STRING: "string", NULL: "null_type"}
_MOST_CONDITIONS = 64


def expression(
    text: str,
    path: str,
    scope: Scope,
    types: Sequence[str],
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Faults:
    """Checks that an expression compiles, and that its value has one of these types.

    `variables` are the types of the policy's variables that it may use, by name.
    """
    compiled = compile_expression(text, scope)
    if compiled.error:
        return [invalid(path, text, f"compilation failed: {compiled.error}")]
    for name in compiled.uses:
        if name not in variables:
            return [invalid(path, text, f"compilation failed: undefined field '{name}'")]
    kind = compiled.type
    if compiled.uses:
        kind, error = _find_type(text, scope, compiled.uses, variables)
        if error:
            return [invalid(path, text, f"compilation failed: {error}")]
    if types and kind not in types:
        wanted = [_TYPE_WORDS[name] for name in types]
        which = wanted[0] if len(wanted) == 1 else f"one of [{' '.join(wanted)}]"
        return [invalid(path, text, f"must evaluate to {which}")]
    return []


def type_of(text: str, scope: Scope, variables: Mapping[str, str]) -> str:
    """Returns the type of the value of an expression, such as BOOL, DYN if it is not known."""
    compiled = compile_expression(text, scope)
    if not compiled.uses or compiled.error:
        return compiled.type or "DYN"
    return _find_type(text, scope, compiled.uses, variables)[0] or "DYN"


def _find_type(
    text: str, scope: Scope, uses: Iterable[str], variables: Mapping[str, str]
) -> tuple[str, str]:
    """Returns what `find_type` does, with the variables that the expression uses alone."""
    used = {name: variables[name] for name in sorted(uses) if name in variables}
    return find_type(spell(text, scope), scope.names, used)


def match_conditions(
    conditions: Sequence[MatchCondition], path: str, check: Callable[[str, str], Faults]
) -> Faults:
    """Checks conditions. `check` gets the text of an expression and its path."""
    if len(conditions) > _MOST_CONDITIONS:
        return [too_many(path, len(conditions), _MOST_CONDITIONS)]
    faults: Faults = []
    for index, condition in enumerate(conditions):
        where = f"{path}[{index}]"
        if not condition.expression.strip():
            faults.append(required(f"{where}.expression"))
        else:
            faults += check(condition.expression, f"{where}.expression")
        if not condition.name:
            faults.append(required(f"{where}.name"))
        else:
            details = names.qualified_name_faults(condition.name)
            faults += invalid_all(f"{where}.name", condition.name, details)
    return faults + repeated(path, "name", [one.name for one in conditions])


def repeated(path: str, field: str, values: Iterable[str]) -> Faults:
    """Returns an error for each value that came before, other than ""."""
    faults: Faults = []
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value and value in seen:
            faults.append(duplicate(f"{path}[{index}].{field}", value))
        seen.add(value)
    return faults
