"""Checks the types in the rules of a custom kind against its schema.

An environment takes a millisecond to make, so all nodes of a schema share one: each node with rules
has a variable there, of the type of its values, and every expression is bound to that of its node.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go,
Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from kcm.api.custom.structural_schema import StructuralSchema
from kcm.apiextensions.cel.type_checking import Descriptions, find_type_in, with_object_fields

_BIND = "cel.bind(self, {0}, cel.bind(oldSelf, {1}, \n{2}\n))"
_BOUND_LINES = 1  # before the expression


class RuleTypes:
    """The types of all nodes of a schema that have rules.

    Without the library, every expression has the type DYN.
    """

    def __init__(self, schema: StructuralSchema) -> None:
        self._root = schema
        self._places: dict[StructuralSchema, tuple[Any, str]] = {}  # environments and variables
        if _untyped_environment() is not None:
            self._describe([node for node in _walk(schema) if node.rules])

    def find(self, text: str, node: StructuralSchema, *, optional_old: bool) -> tuple[str, str]:
        """Returns the type of an expression's value, such as BOOL or DYN, and what is wrong with
        the expression, "" if nothing is.

        It is part of a rule of a node: `self` and `oldSelf` have the type of the node. With
        `optional_old`, `oldSelf` is an optional.
        """
        untyped = _untyped_environment()
        if untyped is None:
            return "DYN", ""
        kind, error = find_type_in(untyped, text)
        environment, name = self._places[node]
        if error or environment is None:
            return kind, error
        old = f"optional.of({name})" if optional_old else name
        return find_type_in(environment, _BIND.format(name, old, text), skipped=_BOUND_LINES)

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
