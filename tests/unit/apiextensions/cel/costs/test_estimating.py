from __future__ import annotations

import pytest

from kcm.apiextensions.cel import cel_environment, expressions
from kcm.apiextensions.cel.costs.estimating import estimate
from kcm.apiextensions.cel.costs.sizes import Described

pytestmark = pytest.mark.skipif(not expressions.available(), reason="no library for CEL here")

# tests/upstream compares nine hundred estimates with upstream's.


def cost(text: str) -> int:
    texts = Described("list", 10, item=Described("string", 20))
    described = Described("object", fields={"texts": texts})
    return estimate(cel_environment.make().compile(text).serialize(), described)


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("true", 0),
        ("1 + 1 == 2", 2),
        ("self.texts.all(x, x == 'abc')", 53),
        ("self.texts.all(x, self.texts.all(y, x == y))", 763),
        ("self.texts[0].matches('^a+$')", 6),
        ("(self.texts[0] + 'abcdefg').contains('xyz')", 9),
        ("true ? self.texts.size() > 1 : false", 4),
    ],
)
def test_what_may_be_done_counts(text: str, most: int) -> None:
    assert cost(text) == most


def test_an_expression_that_is_nested_too_deeply_has_no_estimate() -> None:
    def nest(number: int, data: bytes) -> bytes:
        size = len(data)
        head = bytearray([number << 3 | 2])
        while size > 127:
            head.append(size & 127 | 128)
            size >>= 7
        return bytes([*head, size]) + data

    expression = b""
    for _ in range(2000):
        expression = nest(5, nest(1, expression))  # a field of a field
    url = nest(1, b"type.googleapis.com/cel.expr.CheckedExpr")
    assert estimate(url + nest(2, nest(4, expression)), Described("object")) == 0


def test_an_expression_that_is_not_checked_has_no_estimate() -> None:
    assert cost("1 < 1.5") == 0
