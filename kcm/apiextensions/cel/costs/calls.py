"""What calls of functions cost at most, besides their arguments, and how large their results are.

The costs are upstream's: they decide which definitions it accepts.

Source: staging/src/k8s.io/apiserver/pkg/cel/library/cost.go, Kubernetes 1.36, and checker/cost.go,
ext/lists.go and ext/sets.go of https://github.com/google/cel-go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kcm.apiextensions.cel.costs.sizes import (
    ENDLESS,
    SCALAR,
    UNKNOWN,
    Described,
    Size,
    add,
    multiply,
)
from kcm.apiextensions.cel.costs.syntax import Node, Type

_PER_CHARACTER = 0.1
_PER_CHARACTER_OF_PATTERN = 0.25
_NEW_LIST, _NEW_MESSAGE = 10, 40
_AUTHORIZATION = 350_000  # so that an expression can ask twice
_LONGEST_PATTERN = 128  # of named formats
_ADDRESS = 16  # bytes of an IPv6 address


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument of a call, or what a method is called on."""

    node: Node
    described: Described | None
    type: Type
    size: Size = UNKNOWN

    @property
    def kind(self) -> str:
        """The type, or what the schema says if the checker knows none."""
        if self.type.name == "dyn" and self.described is not None:
            return self.described.kind
        return self.type.name

    @property
    def is_text(self) -> bool:
        return self.kind in ("string", "bytes")

    @property
    def item(self) -> Operand | None:
        """The operand that each item of a list is, None for a text."""
        described = self.described.item if self.described is not None else None
        if described is None and not self.type.parameters:
            return None
        of_type = self.type.parameters[0] if self.type.parameters else Type()
        size = described.size if described is not None else UNKNOWN
        return Operand(self.node, described, of_type, size)


class CallCost(NamedTuple):
    """The most that a call costs, and how large its result is if that is known."""

    cost: int
    size: Size | None = None


_Arguments = Sequence[Operand]
_Estimate = Callable[["Operand | None", "_Arguments"], "CallCost | None"]


def estimate(
    function: str, overload: str, target: Operand | None, arguments: _Arguments
) -> CallCost:
    """Returns what one overload of a function costs, its arguments not counted."""
    rule = _FUNCTIONS.get(function) or _OVERLOADS.get(overload)
    cost = rule(target, arguments) if rule is not None else None
    return cost or CallCost(1, SCALAR if function in _SCALARS else None)


# --- functions of Kubernetes


def _one(_: Operand | None, __: _Arguments) -> CallCost:
    return CallCost(1)


def _check(_: Operand | None, __: _Arguments) -> CallCost:
    return CallCost(_AUTHORIZATION)


def _selector(_: Operand | None, arguments: _Arguments) -> CallCost | None:
    """Parsing makes a requirement of two characters, and each is a struct with a list."""
    if len(arguments) != 1:
        return None
    most = arguments[0].size.most
    requirements = multiply(multiply(most, 0.5), _NEW_LIST + _NEW_MESSAGE)
    return CallCost(add(_NEW_LIST, multiply(most, _PER_CHARACTER), requirements))


def _over_list(target: Operand | None, _: _Arguments) -> CallCost | None:
    if target is None:
        return None
    item = target.item
    if item is None:
        return CallCost(multiply(target.size.most, _PER_CHARACTER))
    each = multiply(item.size.most, _PER_CHARACTER) if item.is_text else 0
    size = SCALAR if item.type.is_scalar or item.kind == "scalar" else None
    return CallCost(multiply(target.size.most, add(1, each)), size)


def _position(target: Operand | None, arguments: _Arguments) -> CallCost | None:
    cost = _over_list(target, arguments)
    return None if cost is None else CallCost(cost.cost, SCALAR)


def _same_text(_: Operand | None, arguments: _Arguments) -> CallCost | None:
    if len(arguments) != 1:
        return None
    size = arguments[0].size
    return CallCost(multiply(size.most, _PER_CHARACTER), size)


def _part_of_text(target: Operand | None, _: _Arguments) -> CallCost | None:
    return (
        None
        if target is None
        else CallCost(multiply(target.size.most, _PER_CHARACTER), target.size)
    )


def _replace(target: Operand | None, arguments: _Arguments) -> CallCost | None:
    if target is None or len(arguments) < 2:  # old and new
        return None
    size, old, new = target.size, arguments[0].size, arguments[1].size
    most = _replaced(size.most, old.least, is_no_gain=new.most <= old.least)
    least = _replaced(size.least, old.most, is_no_gain=old.most <= new.least)
    result = Size(least[0], most[0]).times(new).plus(Size(least[1], most[1]))
    return CallCost(multiply(size.most, 2 * _PER_CHARACTER), result)


def _replaced(size: int, old: int, *, is_no_gain: bool) -> tuple[int, int]:
    """Returns how often a text of some size can be replaced, and how much of the text stays."""
    if old == 0:  # between all characters
        return add(size, 1), size
    return (0, size) if is_no_gain else (math.ceil(size / old), 0)


def _split(target: Operand | None, arguments: _Arguments) -> CallCost | None:
    if target is None:
        return None
    most = target.size.most
    if len(arguments) > 1 and arguments[1].node.value is not None:
        most = min(max(arguments[1].node.value, 0), ENDLESS)
    return CallCost(multiply(target.size.most, 2 * _PER_CHARACTER), Size(0, most))


def _join(target: Operand | None, arguments: _Arguments) -> CallCost | None:
    if target is None:
        return None
    item, count = target.item, target.size
    size = count.times(item.size) if item is not None else Size(0, 0)
    if arguments:
        between = Size(max(count.least - 1, 0), max(count.most - 1, 0))
        size = size.plus(arguments[0].size.times(between))
    return CallCost(multiply(size.most, _PER_CHARACTER), size)


def _match(target: Operand | None, arguments: _Arguments) -> CallCost | None:
    if target is None or not arguments:
        return None
    return CallCost(_search(target, arguments[0]), Size(0, target.size.most))


def _search(text: Operand, pattern: Operand) -> int:
    steps = multiply(add(text.size.most, 1), _PER_CHARACTER)
    return multiply(steps, multiply(pattern.size.most, _PER_CHARACTER_OF_PATTERN))


def _parse(_: Operand | None, arguments: _Arguments) -> CallCost | None:
    if not arguments:
        return None
    return CallCost(multiply(arguments[0].size.most, _PER_CHARACTER), SCALAR)


def _address(target: Operand | None, arguments: _Arguments) -> CallCost | None:
    return CallCost(1, SCALAR) if target is not None else _parse(target, arguments)


def _is_canonical(_: Operand | None, arguments: _Arguments) -> CallCost | None:
    return CallCost(multiply(arguments[0].size.most, 2 * _PER_CHARACTER)) if arguments else None


def _contains_address(_: Operand | None, arguments: _Arguments) -> CallCost | None:
    return _contains(multiply(2 * _ADDRESS, _PER_CHARACTER), arguments)


def _contains_range(_: Operand | None, arguments: _Arguments) -> CallCost | None:
    compared = multiply(2 * _ADDRESS, _PER_CHARACTER) + multiply(_ADDRESS, _PER_CHARACTER) + 1
    return _contains(compared, arguments)


def _contains(compared: int, arguments: _Arguments) -> CallCost | None:
    if not arguments:
        return None
    parsed = multiply(arguments[0].size.most, _PER_CHARACTER) if arguments[0].is_text else 0
    return CallCost(add(compared, parsed))


def _validate(_: Operand | None, arguments: _Arguments) -> CallCost | None:
    if not arguments:
        return None
    steps = multiply(arguments[0].size.most, _PER_CHARACTER)
    return CallCost(multiply(steps, _LONGEST_PATTERN * _PER_CHARACTER_OF_PATTERN))


# --- functions of CEL, and of its libraries for lists and sets


def _sets(factor: int) -> _Estimate:
    def every_pair(_: Operand | None, arguments: _Arguments) -> CallCost | None:
        if len(arguments) != 2:  # both sets
            return None
        pairs = arguments[0].size.times(arguments[1].size)
        return CallCost(add(multiply(pairs.most, factor), 1))

    return every_pair


def _new_list(size: Size, factor: float = 1) -> CallCost:
    return CallCost(add(multiply(size.most, factor), 1 + _NEW_LIST), size)


def _slice(target: Operand | None, arguments: _Arguments) -> CallCost | None:
    if target is None or len(arguments) != 2:  # from and to
        return None
    start, end = (part.node.value for part in arguments)
    most = (target.size.most if end is None else max(end, 0)) - max(start or 0, 0)
    return _new_list(Size(most % 2**64, most % 2**64))  # as upstream, whose numbers wrap around


def _range(_: Operand | None, arguments: _Arguments) -> CallCost | None:
    if len(arguments) != 1:
        return None
    value = arguments[0].node.value
    most = ENDLESS if value is None else max(value, 0)
    return _new_list(Size(most, most))


def _reversed(target: Operand | None, _: _Arguments) -> CallCost | None:
    return None if target is None else _new_list(target.size)


def _flatten(target: Operand | None, arguments: _Arguments) -> CallCost | None:
    if target is None or len(arguments) > 1:
        return None
    depth = arguments[0].node.value if arguments else 1
    return _new_list(target.size, ENDLESS if depth is None else max(depth, 0))


def _distinct(target: Operand | None, arguments: _Arguments) -> CallCost | None:
    if target is None or arguments:
        return None
    return _new_list(target.size.times(target.size), 2.0)


def _sort(target: Operand | None, arguments: _Arguments) -> CallCost | None:
    by = arguments[0] if arguments else target
    if by is None:
        return None
    item = by.item
    factor = 2 + (_PER_CHARACTER if item is not None and item.is_text else 0.0)
    return _new_list(by.size.times(by.size), factor)


def _format(target: Operand | None, _: _Arguments) -> CallCost | None:
    return None if target is None else CallCost(multiply(target.size.most, _PER_CHARACTER))


def _to_bytes(_: Operand | None, arguments: _Arguments) -> CallCost:
    size = arguments[0].size
    result = Size(size.least, multiply(size.most, 4))
    return CallCost(multiply(size.most, _PER_CHARACTER), result)


def _to_text(_: Operand | None, arguments: _Arguments) -> CallCost:
    size = arguments[0].size
    return CallCost(multiply(size.most, _PER_CHARACTER), Size(size.least // 4, size.most))


def _quote(_: Operand | None, arguments: _Arguments) -> CallCost:
    size = arguments[0].size
    result = Size(add(size.least, 2), add(multiply(size.most, 2), 2))
    return CallCost(multiply(size.most, _PER_CHARACTER), result)


def _begins(_: Operand | None, arguments: _Arguments) -> CallCost | None:
    return CallCost(multiply(arguments[0].size.most, _PER_CHARACTER)) if arguments else None


def _in_list(_: Operand | None, arguments: _Arguments) -> CallCost:
    return CallCost(arguments[1].size.most)


def _matches(target: Operand | None, arguments: _Arguments) -> CallCost | None:
    if target is None or len(arguments) != 1:
        return None
    return CallCost(_search(target, arguments[0]))


def _contains_text(target: Operand | None, arguments: _Arguments) -> CallCost | None:
    if target is None or len(arguments) != 1:
        return None
    both = (multiply(part.size.most, _PER_CHARACTER) for part in (target, arguments[0]))
    return CallCost(multiply(*both))


def _add_texts(_: Operand | None, arguments: _Arguments) -> CallCost:
    size = arguments[0].size.plus(arguments[1].size)
    return CallCost(multiply(size.most, _PER_CHARACTER), size)


def _add_lists(_: Operand | None, arguments: _Arguments) -> CallCost:
    return CallCost(1, arguments[0].size.plus(arguments[1].size))


def _compare(_: Operand | None, arguments: _Arguments) -> CallCost:
    most = min(part.size.most for part in arguments)
    return CallCost(multiply(most, _PER_CHARACTER))


# Functions whose results are of types that only Kubernetes has, or numbers.
_SCALARS = frozenset({"add", "sub", "masked"})
_FUNCTIONS: Mapping[str, _Estimate] = {
    "check": _check,
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(("isSorted", "sum", "max", "min"), _over_list),
    **dict.fromkeys(("indexOf", "lastIndexOf"), _position),
    **dict.fromkeys(("url", "jsonpatch.escapeKey"), _same_text),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _part_of_text),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _match),
    **dict.fromkeys(("cidr", "isIP", "isCIDR"), _parse),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _parse),
    "ip": _address,
    "ip.isCanonical": _is_canonical,
    "containsIP": _contains_address,
    "containsCIDR": _contains_range,
    "validate": _validate,
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
    "slice": _slice,
    "lists.range": _range,
    "reverse": _reversed,
    "flatten": _flatten,
    "distinct": _distinct,
    "sort": _sort,
    "lists.@sortByAssociatedKeys": _sort,
    "@sortByAssociatedKeys": _sort,
}
_OVERLOADS: Mapping[str, _Estimate] = {
    "string_format": _format,
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _to_text,
    "strings_quote": _quote,
    **dict.fromkeys(("starts_with_string", "ends_with_string"), _begins),
    "in_list": _in_list,
    "matches_string": _matches,
    "contains_string": _contains_text,
    **dict.fromkeys(("add_string", "add_bytes"), _add_texts),
    "add_list": _add_lists,
    **dict.fromkeys(
        (
            *("less_string", "greater_string", "less_equals_string", "greater_equals_string"),
            *("less_bytes", "greater_bytes", "less_equals_bytes", "greater_equals_bytes"),
            *("equals", "not_equals"),
        ),
        _compare,
    ),
}
