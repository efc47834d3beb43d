from __future__ import annotations

from typing import Any

import pytest

from kcm.api.custom.structural_schema import parse
from kcm.apiextensions.cel.costs.sizes import ENDLESS, Described, Describer, Size, add, multiply
from tests.unit.apiextensions.samples import TEXT, WHOLE, struct


def describe(schema: dict[str, Any], *, root: bool = False) -> Described | None:
    return Describer().describe(parse(schema), root=root)


@pytest.mark.parametrize(
    ("schema", "most", "least_bytes"),
    [
        (TEXT, 3145726, 2),
        (TEXT | {"maxLength": 5}, 20, 2),
        (TEXT | {"maxLength": -5}, 0, 2),
        (TEXT | {"enum": ["a", "abc"]}, 3, 2),
        (TEXT | {"format": "byte", "maxLength": 5}, 5, 2),
        (TEXT | {"format": "date-time", "maxLength": 5}, 32, 21),
        (WHOLE, 0, 1),
        ({"x-kubernetes-int-or-string": True}, 3145726, 1),
        ({"type": "array", "items": WHOLE}, 1572863, 2),
        ({"type": "array", "items": WHOLE, "maxItems": 7}, 7, 2),
        ({"type": "object", "additionalProperties": WHOLE}, 449389, 2),
        ({"type": "object", "additionalProperties": WHOLE, "maxProperties": 7}, 7, 2),
        (struct(ab=WHOLE, c=WHOLE) | {"required": ["ab"]}, 0, 9),
        (struct(ab=WHOLE | {"default": 1}) | {"required": ["ab"]}, 0, 2),
    ],
)
def test_what_has_no_limit_is_limited_by_the_request(
    schema: dict[str, Any], most: int, least_bytes: int
) -> None:
    described = describe(schema)
    assert described is not None
    assert (described.size, described.least_bytes) == (Size(0, most), least_bytes)


def test_values_without_a_type_are_not_described() -> None:
    unknown = {"x-kubernetes-preserve-unknown-fields": True}
    assert describe({"type": "array", "items": unknown}) is None
    described = describe(struct(a=unknown, b=TEXT))
    assert described is not None
    assert list(described.fields) == ["b"]


def test_fields_have_the_names_that_expressions_use() -> None:
    described = describe(struct(namespace=TEXT) | {"x-kubernetes-embedded-resource": True})
    assert described is not None
    assert {"namespace", "__namespace__", "metadata", "kind"} <= described.fields.keys()


def test_sums_and_products_have_an_end() -> None:
    assert add(ENDLESS, 1) == multiply(ENDLESS, 2) == multiply(ENDLESS, 2.5) == ENDLESS
    assert multiply(21, 0.1) == 3
