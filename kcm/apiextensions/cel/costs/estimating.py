"""Estimates the most that evaluating an expression costs, in upstream's units.

Upstream refuses definitions with rules whose estimate is beyond its limits, so that rules which it
would refuse do not get into use here. The estimate is not what protects kcm: evaluation has limits
of its own (`kcm.apiextensions.cel.rules`).

Source: checker/cost.go of https://github.com/google/cel-go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kcm.apiextensions.cel.costs import calls
from kcm.apiextensions.cel.costs.calls import CallCost, Operand
from kcm.apiextensions.cel.costs.sizes import (
    SCALAR,
    UNKNOWN,
    Described,
    Size,
    add,
    key_of,
    multiply,
)
from kcm.apiextensions.cel.costs.syntax import Form, Loop, Node, SyntaxTree, Type, read

_NEW_LIST, _NEW_MAP, _NEW_MESSAGE = 10, 30, 40
_RESULTS = ("@result", "__result__")  # names of what macros gather
_NO_SIZE = Size(2**64 - 1, 0)


def estimate(serialized: bytes, described: Described, bound: int = 0) -> int:
    """Returns the most that evaluating a program costs.

    It is 0 for an expression that is nested too deeply to be read, and for one that compares
    numbers of different types, which the library does not check.

    `described` is what the schema says of `self` and `oldSelf`. `bound` is the number of `cel.bind`
    around the expression, which do not count.
    """
    try:
        tree = read(serialized)
        root = tree.root
        for _ in range(bound):
            if root.loop is None:
                return 0
            root = root.loop.result
        return _Estimator(tree, described).cost(root)
    except (ValueError, RecursionError):
        return 0


@dataclass(frozen=True)
class _Entries:
    """The sizes of the keys and values of a list or map."""

    is_list: bool
    key: Size
    value: Size

    def union(self, other: _Entries | None) -> _Entries | None:
        if other is None:
            return None
        return _Entries(self.is_list, self.key.union(other.key), self.value.union(other.value))


@dataclass(frozen=True)
class _Variable:
    """The declaration and the size of a variable of a macro."""

    described: Described | None
    size: Size | None = None
    entries: _Entries | None = None


@dataclass
class _Estimator:
    """Goes through one expression. `cost` of a part learns the sizes of its value, too.

    As upstream, what is inside of a value that is in no field has the size of the whole object.
    """

    tree: SyntaxTree
    described: Described
    _described: dict[int, Described | None] = field(default_factory=dict)
    _sizes: dict[int, Size] = field(default_factory=dict)
    _entries: dict[int, _Entries] = field(default_factory=dict)
    _variables: dict[str, list[_Variable]] = field(default_factory=dict)

    def cost(self, node: Node) -> int:
        if node.form is Form.NAME:
            self._described[node.number] = self._find_described(node)
            return 1
        if node.form is Form.FIELD:
            return self._field(node)
        if node.form is Form.CALL:
            return self._call(node)
        if node.form in (Form.LIST, Form.STRUCT):
            return self._literal(node)
        if node.loop is not None:
            is_binding = _is_binding(node.loop)
            return self._bind(node, node.loop) if is_binding else self._loop(node, node.loop)
        return 0

    def _field(self, node: Node) -> int:
        assert node.target is not None  # a field is of something
        cost = self.cost(node.target)
        if node.only_tests:
            return cost
        of = self._find_described(node.target)
        self._described[node.number] = (
            of.fields.get(node.name) if of is not None else self.described
        )
        is_counted = self._operand(node.target).kind in ("map", "object", "message", "parameter")
        return add(cost, 1 if is_counted else 0)

    def _call(self, node: Node) -> int:
        if node.name == "dyn" and node.parts:
            cost = self.cost(node.parts[0])
            self._copy(node, node.parts[0])
            return add(cost, 1)
        costs = [self.cost(part) for part in node.parts]
        operands = [self._operand(part) for part in node.parts]
        overloads = self.tree.overloads.get(node.number, ())
        if not overloads:
            return 0
        cost, target = 0, None
        if node.target is not None:
            cost, target = self.cost(node.target), self._operand(node.target)
        most, size = 0, None
        for overload in _choose(overloads, [target or operands[0], *operands] if operands else []):
            called = self._overload(node, overload, target, operands, costs)
            most = max(most, called.cost)
            if called.size is not None:
                size = called.size if size is None else size.union(called.size)
            if overload in ("index_list", "index_map"):
                size = self._index(node)
            size = size or self._size(node)
        if size is not None:
            self._sizes[node.number] = size
        return add(cost, most)

    def _overload(
        self,
        node: Node,
        overload: str,
        target: Operand | None,
        operands: list[Operand],
        costs: list[int],
    ) -> CallCost:
        if overload in ("logical_and", "logical_or"):
            return CallCost(add(*costs))
        if overload == "conditional":
            self._unite_entries(node, node.parts[1], node.parts[2])
            size = operands[1].size.union(operands[2].size)
            return CallCost(add(costs[0], max(costs[1:])), size)
        if overload in ("add_list", "add_string", "add_bytes"):
            self._unite_entries(node, *node.parts)
        called = calls.estimate(node.name, overload, target, operands)
        return CallCost(add(called.cost, *costs), called.size)

    def _index(self, node: Node) -> Size | None:
        of = node.parts[0]
        described = self._find_described(of)
        self._described[node.number] = described.item if described is not None else self.described
        entries = self._find_entries(of)
        return entries.value if entries is not None else None

    def _literal(self, node: Node) -> int:
        cost = add(*(self.cost(part) for part in node.parts))
        if node.form is Form.STRUCT and not node.is_map:
            return add(cost, _NEW_MESSAGE)
        values = node.parts[1::2] if node.is_map else node.parts
        keys = (
            [self._size(part) or UNKNOWN for part in node.parts[::2]] if node.is_map else [SCALAR]
        )
        sizes = [self._size(part) or UNKNOWN for part in values]
        self._entries[node.number] = _Entries(not node.is_map, _unite(keys), _unite(sizes))
        return add(cost, _NEW_MAP if node.is_map else _NEW_LIST)

    def _loop(self, node: Node, loop: Loop) -> int:
        cost = add(self.cost(loop.items), self.cost(loop.first))
        self._push(loop.result_name, self._bound(loop.first))
        first, second = loop.variables
        pushed = self._items(loop.items)
        if second:
            self._push(first, pushed[0])
            self._push(second, pushed[1])
        else:
            entries = self._find_entries(loop.items)
            self._push(first, pushed[1] if self._is_list(loop.items, entries) else pushed[0])
        each = add(self.cost(loop.condition), self.cost(loop.step))
        for name in filter(None, loop.variables):
            self._variables[name].pop()
        cost = add(cost, self.cost(loop.result))
        self._variables[loop.result_name].pop()
        count = self._size(loop.items) or UNKNOWN
        if loop.first.form is Form.CONSTANT:
            if (size := self._size(loop.first)) is not None:
                self._sizes[node.number] = size
        elif loop.first.form in (Form.LIST, Form.STRUCT):
            self._sizes[node.number] = count
            if (entries := self._find_entries(loop.step)) is not None:
                self._entries[node.number] = entries
        return add(cost, multiply(each, count.most))

    def _items(self, items: Node) -> tuple[_Variable, _Variable]:
        """Returns what is known of the keys and of the values of what a macro goes through."""
        entries, of = self._find_entries(items), self._find_described(items)
        key, value = (key_of(of), of.item) if of is not None else (self.described, self.described)
        return (
            _Variable(key, entries.key if entries is not None else None),
            _Variable(value, entries.value if entries is not None else None),
        )

    def _is_list(self, items: Node, entries: _Entries | None) -> bool:
        if entries is not None:
            return entries.is_list
        return self._operand(items).kind == "list"

    def _bind(self, node: Node, loop: Loop) -> int:
        cost = add(self.cost(loop.items), self.cost(loop.first))
        self._push(loop.result_name, self._bound(loop.first))
        cost = add(cost, self.cost(loop.result))
        self._copy(node, loop.result)
        self._variables[loop.result_name].pop()
        return cost

    # --- what is known of the parts

    def _push(self, name: str, variable: _Variable) -> None:
        self._variables.setdefault(name, []).append(variable)

    def _bound(self, node: Node) -> _Variable:
        return _Variable(self._find_described(node), self._size(node), self._find_entries(node))

    def _variable(self, node: Node) -> _Variable | None:
        pushed = self._variables.get(node.name) if node.form is Form.NAME else None
        return pushed[-1] if pushed else None

    def _find_described(self, node: Node) -> Described | None:
        if (variable := self._variable(node)) is not None:
            return variable.described
        if node.form is Form.NAME:  # as upstream, which takes every name for that of the object
            return None if node.name in _RESULTS else self.described
        return self._described.get(node.number)

    def _find_entries(self, node: Node) -> _Entries | None:
        variable = self._variable(node)
        return self._entries.get(node.number) or (variable.entries if variable else None)

    def _size(self, node: Node) -> Size | None:
        if node.number in self._sizes:
            return self._sizes[node.number]
        if node.size is not None:
            return Size(node.size, node.size)
        if (described := self._find_described(node)) is not None:
            return described.size
        if self._type(node).is_scalar:
            return SCALAR
        variable = self._variable(node)
        return variable.size if variable is not None else None

    def _type(self, node: Node) -> Type:
        return self.tree.types.get(node.number, Type())

    def _operand(self, node: Node) -> Operand:
        size = self._size(node) or UNKNOWN
        return Operand(node, self._find_described(node), self._type(node), size)

    def _copy(self, node: Node, other: Node) -> None:
        if (size := self._size(other)) is not None:
            self._sizes[node.number] = size
        if (entries := self._find_entries(other)) is not None:
            self._entries[node.number] = entries

    def _unite_entries(self, node: Node, one: Node, other: Node) -> None:
        entries = self._find_entries(one)
        united = entries.union(self._find_entries(other)) if entries is not None else None
        if united is not None:
            self._entries[node.number] = united


def _choose(overloads: Sequence[str], operands: Sequence[Operand]) -> Sequence[str]:
    """Returns the overloads that are of the operands' kind, all if it is not known."""
    kinds = {operand.kind for operand in operands} & {"list", "map", "string", "bytes"}
    chosen = [name for name in overloads if name.rpartition("_")[2] in kinds]
    return chosen if len(overloads) > 1 and chosen else overloads


def _unite(sizes: list[Size]) -> Size:
    united = _NO_SIZE if sizes else Size(0, 0)
    for size in sizes:
        united = united.union(size)
    return united


def _is_binding(loop: Loop) -> bool:
    """Reports whether a loop is a `cel.bind`: it never runs, and its result has a name."""
    return (
        loop.items.form is Form.LIST
        and not loop.items.parts
        and loop.condition.form is Form.CONSTANT
        and loop.condition.name == "false"
        and loop.result_name not in _RESULTS
    )
