"""Checks the types in the rules of a custom kind against its schema, and estimates their costs.

An environment takes a millisecond to make, so all nodes of a schema share one: each node with rules
has a variable there, of the type of its values, and every expression is bound to that of its node.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go,
Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kcm.api.custom.structural_schema import StructuralSchema
from kcm.apiextensions.cel.costs.estimating import estimate
from kcm.apiextensions.cel.costs.sizes import Described, Describer
from kcm.apiextensions.cel.type_checking import (
    Descriptions,
    compile_in,
    find_type_in,
    with_object_fields,
)

_BIND = "cel.bind(self, {0}, cel.bind(oldSelf, {1}, \n{2}\n))"
_BOUND_LINES = 1  # before the expression
_BOUND = 2  # variables


@dataclass(frozen=True)
class CheckedRule:
    """The result of checking an expression, before it is evaluated."""

    type: str = "DYN"  # of its value, such as BOOL
    error: str = ""  # what is wrong with it
    cost: int = 0  # the most that one evaluation costs, if it is known


class RuleTypes:
    """The types of all nodes of a schema that have rules.

    Without the library, every expression has the type DYN.
    """

    def __init__(self, schema: StructuralSchema) -> None:
        self._root = schema
        self._describer = Describer()
        self._places: dict[StructuralSchema, tuple[Any, str]] = {}  # environments and variables
        if _untyped_environment() is not None:
            self._describe([node for node in _walk(schema) if node.rules])

    def find(self, text: str, node: StructuralSchema, *, optional_old: bool) -> CheckedRule:
        """Returns what is known of an expression in a rule of a node: `self` and `oldSelf` have
        the type of the node. With `optional_old`, `oldSelf` is an optional.
        """
        untyped = _untyped_environment()
        if untyped is None:
            return CheckedRule()
        kind, error = find_type_in(untyped, text)
        environment, name = self._places[node]
        if error or environment is None:
            return CheckedRule(kind, error)
        old = f"optional.of({name})" if optional_old else name
        bound = _BIND.format(name, old, text)
        program, error = compile_in(environment, bound, skipped=_BOUND_LINES)
        if program is None:
            return CheckedRule("", error)
        described = self.described(node)
        cost = estimate(program.serialize(), described, _BOUND) if described is not None else 0
        return CheckedRule(str(program.return_type().name()), "", cost)

    def described(self, node: StructuralSchema) -> Described | None:
        """Returns what a node says of the size of its values, None if rules may not read them."""
        return self._describer.describe(node, root=node is self._root)

    def _describe(self, nodes: Sequence[StructuralSchema]) -> None:
        """Makes an environment for nodes. One that protobuf cannot express has none."""
        from kcm.apiextensions.cel import cel_environment  # noqa: PLC0415 - loads 16 MB

        pool = Descriptions()
        variables = {
            f"node{number}": pool.describe(with_object_fields(node) if node is self._root else node)
            for number, node in enumerate(nodes)
        }
        try:
            environment = cel_environment.make_typed(pool.build(), variables, ())
        except (RuntimeError, TypeError, ValueError):
            if len(nodes) == 1:
                self._places[nodes[0]] = (None, "")
                return
            middle = len(nodes) // 2
            self._describe(nodes[:middle])
            self._describe(nodes[middle:])
            return
        for node, name in zip(nodes, variables, strict=True):
            self._places[node] = (environment, name)


def _walk(schema: StructuralSchema) -> Iterator[StructuralSchema]:
    yield schema
    for inner in schema.inner():
        yield from _walk(inner)


@lru_cache(maxsize=1)
def _untyped_environment() -> Any:
    """Returns the environment in which rules are evaluated, None without the library.

    An expression must be one there, too: no bracket in it may end the binding.
    """
    try:
        from kcm.apiextensions.cel import cel_environment  # noqa: PLC0415 - loads 16 MB
    except ImportError:
        return None
    return cel_environment.make()
