"""Regular expressions of schemas: Go's dialect, in linear time."""

from __future__ import annotations

import time

import pytest

from kcm.apiextensions import patterns

LONG = 200_000  # characters


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (r"^(?i)(abort|warn)?$", "Abort", "aborted"),
        (r"^\p{L}+$", "äß", "a1"),
        (r"^\Qa.b\E$", "a.b", "axb"),
        (r"^(?<n>a)$", "a", "b"),
        (r"(?U)^a+$", "aa", "b"),
        (r"^\d+$", "12", "٣"),
        (r"^\w+$", "ab_1", "ä"),
        (r"^a$", "a", "a\n"),
        (r"^[[:alpha:]]\z", "a", "1"),
        (r"^.$", "\ud800", ""),
    ],
)
def test_expressions_are_read_as_go_reads_them(pattern: str, matching: str, other: str) -> None:
    assert patterns.matches(pattern, matching)
    assert not patterns.matches(pattern, other)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a(b", "missing closing ): `a(b`"),
        ("[a", "missing closing ]: `[a`"),
        ("a)", "unexpected ): `a)`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        (r"\Z", r"invalid escape sequence: `\Z`"),
        (r"\\\C", r"invalid escape sequence: `\C`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("a" * 100_000, f"expression too large: `{'a' * 80}`"),
        (r"\p{L}" * 600, "expression too large"),
    ],
)
def test_a_bad_expression_is_refused_in_gos_words(pattern: str, text: str) -> None:
    with pytest.raises(patterns.BadPatternError) as refused:
        patterns.compile_pattern(pattern)
    assert str(refused.value).startswith(f"error parsing regexp: {text}")


@pytest.mark.parametrize("pattern", [r"^(a+)+$", r"^(a|aa)+$", r"(a*)*b$", r"(.*a){20}$"])
def test_no_expression_takes_more_than_the_text_is_long(pattern: str) -> None:
    before = time.process_time()
    patterns.matches(pattern, "a" * LONG + "!")
    assert time.process_time() - before < 5


def test_all_matches_are_found_as_go_finds_them() -> None:
    assert patterns.find_all("[0-9]*", "123 a") == ["123", "", ""]
    assert patterns.find_all("[0-9]+", "1 2 3", 2) == ["1", "2"]
    assert patterns.find_all("x", "123") == []
    assert patterns.find("[A-Z]", "aB") == "B"
    assert patterns.find("[A-Z]", "ab") == ""


def test_searching_a_long_text_again_and_again_is_cut() -> None:
    with pytest.raises(ValueError, match="too much to search"):
        patterns.find_all("a.*b|a", "a" * LONG)


@pytest.mark.parametrize("form", ["email", "hostname", "mac", "uuid", "duration", "date-time"])
@pytest.mark.parametrize(
    "text", ["a" * LONG, "1" * LONG, "1ms" * LONG + "!", "a@" * LONG, "\ud800"]
)
def test_long_texts_are_checked_for_a_format_in_linear_time(form: str, text: str) -> None:
    before = time.process_time()
    assert not patterns.has_format(form, text)
    assert time.process_time() - before < 5
