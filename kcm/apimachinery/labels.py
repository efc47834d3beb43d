"""Label selectors.

Source: staging/src/k8s.io/apimachinery/pkg/labels/selector.go and
pkg/apis/meta/v1/helpers.go (LabelSelectorAsSelector), Kubernetes 1.33.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kcm import errors
from kcm.apimachinery import names
from kcm.apimachinery.meta_v1 import LabelSelector, LabelSelectorRequirement

_EXPRESSION_OPERATORS = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
}
_ONE_VALUE = frozenset({"=", "==", "!=", ">", "<"})
_SET_OPERATORS = frozenset({"in", "notin"})
_TOKEN = re.compile(r"\s*(==|!=|[=!<>(),]|[^\s=!<>(),]+)")
_SYMBOLS = frozenset({"=", "==", "!=", "!", "<", ">", "(", ")", ","})


@dataclass(frozen=True)
class Requirement:
    """A condition on one label. The operators are =, ==, !=, in, notin, exists, !, > and <."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    @cached_property
    def _members(self) -> frozenset[str]:
        """Returns the values as a set, since a selector may have thousands and is matched often."""
        return frozenset(self.values)

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "=" | "==" | "in":
                return value is not None and value in self._members
            case "!=" | "notin":
                return value is None or value not in self._members
            case "exists":
                return value is not None
            case "!":
                return value is None
        return value is not None and self._compare_numbers(value)

    def _compare_numbers(self, value: str) -> bool:
        try:
            left, right = int(value), int(self.values[0])
        except ValueError:
            return False
        return left > right if self.operator == ">" else left < right

    def __str__(self) -> str:
        if self.operator == "exists":
            return self.key
        if self.operator == "!":
            return f"!{self.key}"
        if self.operator in _ONE_VALUE:
            return f"{self.key}{self.operator}{self.values[0]}"
        return f"{self.key} {self.operator} ({','.join(sorted(self.values))})"


@dataclass(frozen=True)
class Selector:
    """Requirements that must all hold. Without any, the selector matches everything."""

    requirements: tuple[Requirement, ...] = ()
    selects_nothing: bool = False
    _equal: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False)
    _others: tuple[Requirement, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Equality, by far the most common operator, is checked without a call for each.
        equal = [r for r in self.requirements if r.operator in {"=", "=="}]
        object.__setattr__(self, "_equal", tuple((r.key, r.values[0]) for r in equal))
        others = tuple(r for r in self.requirements if r.operator not in {"=", "=="})
        object.__setattr__(self, "_others", others)

    @classmethod
    def everything(cls) -> Selector:
        return cls()

    @classmethod
    def nothing(cls) -> Selector:
        return cls(selects_nothing=True)

    @classmethod
    def parse(cls, text: str) -> Selector:
        """Parses a selector such as `a=b,c in (d,e),!f`. Raises BadRequest."""
        return cls(_sort(_Parser(text).requirements()))

    @classmethod
    def from_label_selector(cls, selector: LabelSelector | None) -> Selector:
        """Returns the selector of a LabelSelector. Raises BadRequest.

        None matches nothing, an empty LabelSelector everything.
        """
        if selector is None:
            return cls.nothing()
        equal = [
            Requirement(key, "=", (value,)) for key, value in (selector.match_labels or {}).items()
        ]
        expressions = [_from_expression(e) for e in selector.match_expressions or ()]
        for requirement in (*equal, *expressions):
            _check(requirement, str(requirement.key))
        return cls(_sort([*equal, *expressions]))

    @property
    def empty(self) -> bool:
        """Reports whether the selector matches everything."""
        return not self.requirements and not self.selects_nothing

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        if self.selects_nothing:
            return False
        labels = labels or {}
        for key, value in self._equal:
            if labels.get(key) != value:
                return False
        return all(requirement.matches(labels) for requirement in self._others)

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


def _sort(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    return tuple(sorted(requirements, key=lambda requirement: requirement.key))


def _from_expression(expression: LabelSelectorRequirement) -> Requirement:
    operator = _EXPRESSION_OPERATORS.get(expression.operator)
    if operator is None:
        raise errors.BadRequest(f'"{expression.operator}" is not a valid label selector operator')
    return Requirement(expression.key, operator, tuple(expression.values or ()))


def _check(requirement: Requirement, text: str) -> None:
    """Raises BadRequest for an invalid requirement. `text` is shown in the message."""
    faults = _faults(requirement)
    if faults:
        raise errors.BadRequest(
            f"unable to parse requirement: {'; '.join(faults)} ({errors.shorten(text)!r})"
        )


def _faults(requirement: Requirement) -> list[str]:
    operator, values = requirement.operator, requirement.values
    faults = [
        f'key: Invalid value: "{requirement.key}": {fault}'
        for fault in names.qualified_name_faults(requirement.key)
    ]
    if operator in _SET_OPERATORS and not values:
        faults.append(
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
        )
    if operator in {"exists", "!"} and values:
        faults.append(
            "values: Invalid value: values set must be empty for exists and does not exist"
        )
    if operator in {">", "<"} and not re.fullmatch(r"[+-]?\d+", values[0], re.ASCII):
        faults.append(
            "values[0]: Invalid value: for 'Gt', 'Lt' operators, the value must be an integer"
        )
    for index, value in enumerate(values):
        faults += [
            f'values[{index}][{requirement.key}]: Invalid value: "{value}": {fault}'
            for fault in names.label_value_faults(value)
        ]
    return faults


class _Parser:
    """A recursive-descent parser over the tokens of a selector."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [match[1] for match in _TOKEN.finditer(text)]
        self._at = 0

    def requirements(self) -> Iterator[Requirement]:
        while self._peek():
            if self._peek() == ",":
                raise self._fault("found ',', expected: identifier, '!' or end of string")
            requirement = self._requirement()
            _check(requirement, self._text)
            yield requirement
            if self._peek() == ",":
                self._next()
                if not self._peek():
                    raise self._fault("found '', expected: identifier after ','")
            elif self._peek():
                raise self._fault(f"found '{self._peek()}', expected: ',' or 'end of string'")

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._next()
            return Requirement(self._word("identifier"), "!")
        key = self._word("identifier")
        operator = self._peek()
        if operator in {"", ","}:
            return Requirement(key, "exists")
        self._next()
        if operator in _SET_OPERATORS:
            return Requirement(key, operator, self._values())
        if operator in _ONE_VALUE:
            value = "" if self._peek() in {"", ","} else self._word("identifier")
            return Requirement(key, operator, (value,))
        raise self._fault(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")

    def _values(self) -> tuple[str, ...]:
        if self._next() != "(":
            raise self._fault("expected: '('")
        values: list[str] = []
        expect_value = True
        while (token := self._next()) != ")":
            if token == "":
                raise self._fault("found '', expected: ',' or ')'")
            if token == ",":
                values += [""] if expect_value else []
                expect_value = True
            elif token in _SYMBOLS or not expect_value:
                raise self._fault(f"found '{token}', expected: ',' or ')'")
            else:
                values.append(token)
                expect_value = False
        if expect_value:
            values.append("")
        return tuple(sorted(set(values)))

    def _word(self, expected: str) -> str:
        token = self._next()
        if token == "" or token in _SYMBOLS:
            raise self._fault(f"found '{token}', expected: {expected}")
        return token

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _fault(self, problem: str) -> errors.BadRequest:
        return errors.BadRequest(
            f"unable to parse requirement: {problem} ({errors.shorten(self._text)!r})"
        )


def format_selector(selector: LabelSelector | None) -> str:
    """Returns a LabelSelector as upstream's messages show it, in Go's notation."""
    if selector is None:
        return "nil"
    labels = "".join(f"{k}: {v}," for k, v in sorted((selector.match_labels or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{e.key},Operator:{e.operator},"
        f"Values:[{' '.join(e.values or ())}],}},"
        for e in selector.match_expressions or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
