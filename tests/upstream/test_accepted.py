"""The list of accepted differences can only shrink."""

import pytest

from tests.upstream import accepted
from tests.upstream.comparisons import COMPARISONS


def test_a_difference_that_no_reason_explains_is_a_failure() -> None:
    with pytest.raises(AssertionError, match="case 1 differs: because"):
        accepted.check({"a group without reasons": {1: "because"}})


def test_a_listed_case_that_agrees_is_a_failure() -> None:
    with pytest.raises(AssertionError, match="agree and are listed"):
        accepted.check({"strategic merge": {}})


def test_each_reason_is_a_sentence_and_explains_cases_that_no_other_does() -> None:
    for group, entries in accepted.read().items():
        listed = [case for entry in entries for case in accepted.parse_cases(entry["cases"])]
        assert len(listed) == len(set(listed)), group
        assert all(entry["reason"].endswith(".") for entry in entries), group


def test_every_group_of_the_list_is_compared() -> None:
    compared = {group for groups in COMPARISONS.values() for group in groups}
    assert accepted.read().keys() <= compared  # a group that is misspelt explains nothing


def test_neighbouring_cases_are_written_as_a_range() -> None:
    assert accepted.format_cases([1, 2, 3, 7]) == "1-3 7"
    assert accepted.parse_cases("1-3 7") == {1, 2, 3, 7}
