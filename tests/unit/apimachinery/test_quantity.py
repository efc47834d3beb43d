"""Quantities, compared with exact fractions."""

import copy
import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm.apimachinery.quantity import Quantity, add_amounts, parse

EXACT = st.integers(-(10**9), 10**9)
SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(1000),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "Ki": Fraction(1024),
    "Mi": Fraction(1024**2),
    "Gi": Fraction(1024**3),
    "e3": Fraction(1000),
    "E-2": Fraction(1, 100),
}


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("0", "0"),
        ("0.1", "100m"),
        ("100m", "100m"),
        ("1000m", "1"),
        ("1.5", "1500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1Ki", "1Ki"),
        ("1000Ki", "1000Ki"),
        ("0.5Mi", "512Ki"),
        ("1.1Ki", "1126400m"),
        ("1e3", "1e3"),
        ("12e5", "1200e3"),
        ("1e-3", "1e-3"),
        ("100000", "100k"),
        ("1E", "1E"),
        ("10E", "10E"),
        ("1000E", "1000E"),
        ("-1.5", "-1500m"),
        (".5", "500m"),
        ("1n", "1n"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("1e-20", "1e-9"),
        ("16Ei", "9223372036854775807"),
    ],
)
def test_a_quantity_prints_in_canonical_form(text: str, printed: str) -> None:
    assert str(Quantity(text)) == printed
    assert str(Quantity(printed)) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must match the regular expression"),
        ("abc", "must match the regular expression"),
        ("1 ", "must match the regular expression"),
        ("1\n", "must match the regular expression"),
        ("\u0661", "must match the regular expression"),
        ("1" * 1000, "must match the regular expression"),
        ("1Kb", "must match the regular expression"),
        ("1mm", "unable to parse quantity's suffix"),
        ("1KiKi", "unable to parse quantity's suffix"),
        ("1.2.3", "unable to parse quantity's suffix"),
        ("1e", "unable to parse quantity's suffix"),
        (".", "unable to parse numeric part"),
    ],
)
def test_what_is_not_a_quantity_is_refused_in_upstreams_words(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(text)


def test_a_huge_exponent_is_capped_without_effort() -> None:
    assert Quantity("1e999999999").value() == 2**63 - 1
    assert Quantity("-1e999999999").value() == -(2**63 - 1)
    assert Quantity("1e-999999999") == Quantity("1n")
    assert not Quantity("0e999999999")


@given(EXACT, st.sampled_from(sorted(SUFFIXES)))
def test_parsing_is_exact_down_to_a_billionth(number: int, suffix: str) -> None:
    exact = number * SUFFIXES[suffix]
    assert Fraction(parse(f"{number}{suffix}").nanos, 10**9) == exact


@given(EXACT, EXACT, st.sampled_from(sorted(SUFFIXES)), st.sampled_from(sorted(SUFFIXES)))
def test_sums_differences_and_order_agree_with_fractions(
    left: int, right: int, one: str, other: str
) -> None:
    a, b = parse(f"{left}{one}"), parse(f"{right}{other}")
    x, y = left * SUFFIXES[one], right * SUFFIXES[other]
    assert Fraction((a + b).nanos, 10**9) == x + y
    assert Fraction((a - b).nanos, 10**9) == x - y
    assert (a < b, a == b, a >= b) == (x < y, x == y, x >= y)


@given(EXACT, st.integers(-1000, 1000))
def test_products_agree_with_integers(number: int, factor: int) -> None:
    assert (Quantity(number) * factor).value() == number * factor
    assert factor * Quantity(number) == Quantity(number * factor)


@given(EXACT, st.sampled_from(sorted(SUFFIXES)))
def test_printing_and_parsing_again_loses_nothing(number: int, suffix: str) -> None:
    quantity = parse(f"{number}{suffix}")
    assert parse(str(quantity)) == quantity
    assert str(parse(str(quantity))) == str(quantity)


@given(EXACT)
def test_whole_and_milli_values_round_away_from_zero(micro: int) -> None:
    exact = Fraction(micro, 10**6)
    quantity = parse(f"{micro}u")
    sign = -1 if micro < 0 else 1
    assert quantity.value() == sign * -(-abs(exact) // 1)
    assert quantity.milli_value() == sign * -(-abs(exact * 1000) // 1)


def test_equal_amounts_are_equal_and_hash_alike_whatever_their_suffix() -> None:
    assert Quantity("1Ki") == Quantity("1024") == Quantity("1.024k")
    assert len({Quantity("1Ki"), Quantity("1024")}) == 1
    assert Quantity(1) != 1


def test_a_sum_begun_at_zero_prints_as_its_parts_do() -> None:
    assert str(sum([Quantity("1Gi"), Quantity("512Mi")], Quantity())) == "1536Mi"


def test_quantities_are_immutable_and_copy_as_themselves() -> None:
    quantity = Quantity("1Gi")
    with pytest.raises(AttributeError):
        quantity.nanos = 1
    assert copy.copy(quantity) is quantity
    assert copy.deepcopy(quantity) is quantity
    assert str(pickle.loads(pickle.dumps(quantity))) == "1Gi"


def test_signs_zero_and_negation() -> None:
    assert (Quantity("-1").sign(), Quantity().sign(), Quantity("1m").sign()) == (-1, 0, 1)
    assert -Quantity("1") == Quantity("-1")
    assert not Quantity()
    assert Quantity("1n")
    assert Quantity.of_milli(1500) == Quantity("1.5")
    assert repr(Quantity("1.5Gi")) == "Quantity('1536Mi')"


def test_rounding_up_keeps_what_needs_none() -> None:
    quantity = Quantity("5m")
    assert quantity.round_up(-3) is quantity
    assert Quantity("1u").round_up(-3) == Quantity("1m")


def test_amounts_are_added_by_name() -> None:
    one, two = Quantity(1), Quantity(2)
    assert add_amounts({"a": one}, {"a": two, "b": one}) == {"a": Quantity(3), "b": one}


@pytest.mark.parametrize(
    "text", ["+1", "1E6", "10.035M", "1.", "00100", "0.5", "1024Ki", "1500Ki", "1000"]
)
def test_what_upstream_takes_for_canonical_is_written_as_it_was_given(text: str) -> None:
    canonical = {"0.5": "500m", "1024Ki": "1Mi", "1000": "1k"}
    assert str(Quantity(text)) == canonical.get(text, text)
