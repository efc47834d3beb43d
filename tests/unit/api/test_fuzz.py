"""Arbitrary input raises only kcm's errors, and loses nothing."""

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kcm import errors
from kcm.api import codec
from kcm.api.core_v1 import Node, Pod
from kcm.api.scheme import BUILT_IN, Kinds, Resource
from kcm.kinds import defaults
from kcm.kinds.validation import validate_create, validate_update
from kcm.testing import builders
from tests.samples import BODIES, sample

VALID = [
    codec.to_dict(obj)
    for obj in (
        builders.pod(owner=builders.replica_set(), phase="Running", ready=True, node="n1"),
        builders.replica_set(),
        builders.node(),
        builders.namespace(),
        builders.lease(),
        builders.event(builders.pod()),
        *map(sample, BODIES),
    )
]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(10**40), 10**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=10),
    st.sampled_from(["1Gi", "-1", "2024-01-01T00:00:00Z", "Always", "n1", "a/b", "\ud800"]),
)
Place = tuple[str | int, ...]  # the names and indexes that lead to a value inside JSON
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=10,
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
CLEAN = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(-(10**40), 10**40),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXT,
    ),
    lambda inner: st.one_of(
        st.lists(inner | st.none(), max_size=4), st.dictionaries(TEXT, inner, max_size=4)
    ),
    max_leaves=10,
)


def process(
    data: dict[str, Any] | str | bytes, kind: Resource | Kinds = BUILT_IN, *, strict: bool = False
) -> bytes | None:
    """Decodes, completes and validates an object as the API server does; None if it is rejected."""
    try:
        obj = defaults.apply(codec.decode(data, kind, strict=strict))
        validate_create(obj)
        validate_update(obj, obj)
        return codec.encode(obj)
    except errors.KcmError:
        return None


def walk(value: dict[str, Any] | list[Any], path: Place = ()) -> Iterator[Place]:
    """Yields every path inside a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, inner in items:
        yield (*path, name)
        if isinstance(inner, dict | list):
            yield from walk(inner, (*path, name))


def change(value: Any, path: Place, new: object) -> Any:
    """Returns a copy of a JSON value with another value at one path."""
    if not path:
        return new
    copied: Any = dict(value) if isinstance(value, dict) else list(value)
    copied[path[0]] = change(copied[path[0]], path[1:], new)
    return copied


@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_are_refused_or_processed(data: bytes, strict: bool) -> None:
    process(data, strict=strict)
    process(data, Pod.resource)


@given(JSON)
def test_any_json_is_refused_or_processed(value: object) -> None:
    process(json.dumps(value))
    process(json.dumps(value), Node.resource, strict=True)


@given(st.data())
def test_a_valid_object_with_anything_anywhere_is_refused_or_processed(data: st.DataObject) -> None:
    body = data.draw(st.sampled_from(VALID))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(sorted(walk(body), key=repr)))
        body = change(body, path, data.draw(JSON))
        if not isinstance(body, dict):
            break
    process(body)


@given(st.data())
def test_a_valid_object_with_bytes_cut_or_swapped_is_refused_or_processed(
    data: st.DataObject,
) -> None:
    text = bytearray(json.dumps(data.draw(st.sampled_from(VALID))).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    process(bytes(text[: data.draw(st.integers(0, len(text)))]))
    process(bytes(text), strict=True)


@given(st.sampled_from(VALID), st.data())
def test_unknown_fields_anywhere_survive_a_round_trip_that_keeps_them(
    body: dict[str, Any], data: st.DataObject
) -> None:
    structs = [(), ("metadata",)] + [(part,) for part in ("spec", "status") if part in body]
    path = data.draw(st.sampled_from(structs))
    extra = {f"x-{name}": value for name, value in data.draw(st.dictionaries(TEXT, CLEAN)).items()}
    target = body[path[0]] if path else body
    grown = change(body, path, {**target, **extra})
    kept = codec.decode(grown, BUILT_IN, keep_unknown=True)
    assert json.loads(codec.encode(kept)) == grown
    assert json.loads(codec.encode(codec.decode(grown, BUILT_IN))) == body


@given(st.text(max_size=80))
def test_any_text_is_yaml_or_refused(text: str) -> None:
    try:
        documents = codec.load_yaml_documents(text)
    except errors.BadRequest:
        return
    for document in documents:
        process(document)


@given(st.binary(max_size=80))
def test_any_bytes_are_yaml_or_refused(data: bytes) -> None:
    try:
        codec.load_yaml_documents(data)
    except errors.BadRequest:
        return


@given(st.dictionaries(TEXT, CLEAN, max_size=4))
def test_json_text_means_the_same_read_as_yaml(document: dict[str, Any]) -> None:
    text = json.dumps(document)
    try:
        [loaded] = codec.load_yaml_documents(text) or [{}]
    except errors.BadRequest:
        return  # what YAML refuses (control characters, a merge key of the wrong type)
    if str(document.get("kind", "")).endswith("List") or "<<" in text:
        return
    assert loaded == json.loads(text)
