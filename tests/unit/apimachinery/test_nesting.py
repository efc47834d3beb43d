"""The limit on the depth of JSON from outside."""

from __future__ import annotations

import json
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm import errors
from kcm.apimachinery import nesting

JSON = st.recursive(
    st.none() | st.booleans() | st.text(max_size=8) | st.sampled_from(['"', "\\", '\\"[', "{["]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=20,
)


def nest(depth: int, inner: bytes) -> bytes:
    return b'{"a[":[' * (depth // 2) + inner + b"]}" * (depth // 2)


@given(JSON)
def test_what_is_flat_passes_whatever_its_texts_hold(value: object) -> None:
    text = json.dumps(value).encode()
    nesting.check(b"[" + b",".join([text] * 60) + b"]")


@given(JSON)
def test_what_is_deep_is_refused_whatever_its_texts_hold(value: object) -> None:
    text = json.dumps(value).encode()
    with pytest.raises(errors.BadRequest, match="nested deeper than 128"):
        nesting.check(b"[" + text + b"," + nest(nesting.MAX_DEPTH, text) + b"]")


def test_the_deepest_that_is_allowed_passes() -> None:
    nesting.check(nest(nesting.MAX_DEPTH, b"1"))


@pytest.mark.parametrize(
    "text",
    [b"[" * 3_000_000, b"[]" * 1_500_000, b'"[' * 1_500_000, b'["' + b'\\"' * 1_500_000,
     b"[" * (nesting.MAX_DEPTH + 1) + b'"' + b"\\" * 3_000_001, b"]" * 3_000_000],
)  # fmt: skip
def test_any_body_is_measured_in_linear_time(text: bytes) -> None:
    before = time.process_time()
    with suppress(errors.BadRequest):
        nesting.check(text)
    assert time.process_time() - before < 5


def test_very_many_parts_are_refused_but_not_brackets_in_texts() -> None:
    with pytest.raises(errors.BadRequest, match="more than 100000 objects and lists"):
        nesting.check(b"[" + b"{}," * 100_000 + b"1]")
    with pytest.raises(errors.BadRequest, match="more than 300000 values"):
        nesting.check(b"[" + b"1," * 300_000 + b"1]")
    nesting.check(b'["' + b"{}," * 500_000 + b'"' + b",{}" * 99_998 + b"]")
