from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm.store.merge import merge_patch, three_way

JSON = st.recursive(
    st.integers() | st.text(max_size=3) | st.booleans(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abcd"), inner),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), JSON, max_size=4)


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [  # the examples of RFC 7396, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch_follows_the_rfc(target: Any, patch: Any, expected: Any) -> None:
    assert merge_patch(target, patch) == expected


@given(OBJECTS, OBJECTS)
def test_a_first_apply_brings_everything_it_names(
    modified: dict[str, Any], current: dict[str, Any]
) -> None:
    merged = merge_patch(current, three_way({}, modified, current))
    assert three_way(modified, modified, merged) == {}


@given(OBJECTS, OBJECTS)
def test_applying_the_same_again_changes_nothing(
    original: dict[str, Any], current: dict[str, Any]
) -> None:
    once = merge_patch(current, three_way({}, original, current))
    assert merge_patch(once, three_way(original, original, once)) == once


def test_what_the_last_apply_named_and_this_one_does_not_is_deleted() -> None:
    original = {"labels": {"a": "1", "b": "2"}}
    current = {"labels": {"a": "1", "b": "2", "others": "kept"}}
    patch = three_way(original, {"labels": {"a": "1"}}, current)
    assert merge_patch(current, patch) == {"labels": {"a": "1", "others": "kept"}}
