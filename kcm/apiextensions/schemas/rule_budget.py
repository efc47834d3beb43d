"""The budget of the estimated costs of a definition's rules.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/{validation,
cel_validation}.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcm.api.custom.structural_schema import StructuralSchema
from kcm.apiextensions.cel.costs.sizes import ENDLESS, Described, add, multiply
from kcm.apimachinery.field_errors import forbidden
from kcm.errors import FieldError

_OF_EXPRESSION = 10_000_000  # the most that one expression may cost for all values of an object
_OF_SCHEMA = 100_000_000
_MOST_NAMED = 4  # rules of a schema that costs too much
_FACTORS = 1.5, 100.0  # up to the first one, decimals are told; beyond the second, no number
_ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, "
    "maps, and strings are declared)"
)


class RuleBudget:
    """Sums the costs of the rules of a schema."""

    def __init__(self) -> None:
        self._total = 0
        self._costly: list[tuple[int, str]] = []  # costs and paths

    def spend(self, cost: int, path: str, name: str) -> Iterator[FieldError]:
        """Adds the cost of an expression, and yields a fault if it is too high alone."""
        self._total = add(self._total, cost)
        if cost >= _OF_SCHEMA // 100:
            self._costly.append((cost, path))
        if cost > _OF_EXPRESSION:
            yield forbidden(path, _describe(f"estimated {name} cost", cost, _OF_EXPRESSION))

    def close(self, path: str) -> Iterator[FieldError]:
        """Yields the faults of a schema whose rules cost too much together."""
        if self._total <= _OF_SCHEMA:
            return
        for _, where in sorted(self._costly, key=lambda rule: -rule[0])[:_MOST_NAMED]:
            yield forbidden(
                where,
                "contributed to estimated rule cost total exceeding cost limit for entire "
                "OpenAPIv3 schema",
            )
        name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield forbidden(path, _describe(name, self._total, _OF_SCHEMA))


def most_often(described: Described | None, limit: int | None) -> int:
    """Returns how often a value can be in one object.

    `limit` is what the lists and maps around it allow, None if one of them has no limit.
    """
    if limit is not None:
        return limit
    return described.most_often if described is not None else ENDLESS


def limit_of(schema: StructuralSchema, limit: int | None) -> int | None:
    """Returns what the limit is for the schemas directly below one with this limit."""
    if limit is None or (schema.type != "array" and schema.additional is None and not schema.open):
        return limit
    most = schema.raw.get("maxItems" if schema.type == "array" else "maxProperties")
    return None if most is None else multiply(limit, max(int(most), 0))


def _describe(name: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > _FACTORS[1]:
        text = "more than 100x"
    else:
        text = f"{factor:f}x" if factor < _FACTORS[0] else f"{factor:.1f}x"
    return f"{name} exceeds budget by factor of {text} {_ADVICE}"
