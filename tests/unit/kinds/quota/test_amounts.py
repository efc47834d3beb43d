from __future__ import annotations

from kcm.apimachinery.quantity import Quantity
from kcm.kinds.quota.amounts import format_amounts, format_names, growth, only

ONE, TWO = Quantity(1), Quantity(2)


def test_arithmetic_is_by_name() -> None:
    assert growth({"a": TWO, "b": ONE}, {"a": ONE, "b": TWO}) == {"a": ONE, "b": Quantity(0)}
    assert only({"a": ONE, "b": TWO}, ["b", "c"]) == {"b": TWO}


def test_errors_print_amounts_in_order() -> None:
    assert format_amounts({"b": Quantity("1500m"), "a": ONE}) == "a=1,b=1500m"
    assert format_names(["b", "a"]) == "a,b"
