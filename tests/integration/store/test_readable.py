"""Tests that every reader can read everything that any writer could store."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic_core import from_json

from kcm import errors
from kcm.api import codec
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.nesting import MAX_DEPTH
from kcm.redisio import RedisIO
from kcm.store import Store
from kcm.store.apply import apply
from kcm.store.eventbus import EventBus
from kcm.store.managed_fields.managers import FieldManager

pytestmark = pytest.mark.redis_only

REVISIONS = BUILT_IN.lookup("controllerrevisions")  # whose data may be of any depth


def nest(levels: int, *, lists: bool = False) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value] if lists else {"a": value}
    return value


def revision(name: str, data: Any = None) -> Any:
    """Returns a ControllerRevision as a user would send it."""
    body = {"metadata": {"name": name, "namespace": "default"}, "revision": 1, "data": data or {}}
    return codec.decode(body, REVISIONS)


def deep_revision(levels: int, *, lists: bool = False) -> Any:
    """Returns a revision whose body is nested `levels` deep."""
    return revision("deep", {"a": nest(levels - 2, lists=lists)})


@pytest.fixture
def store(io: RedisIO) -> Store:
    return Store(io)


@pytest.mark.parametrize("lists", [False, True])
def test_every_reader_reads_what_is_as_deep_as_allowed(store: Store, lists: bool) -> None:
    store.create(deep_revision(MAX_DEPTH, lists=lists))
    raw = store.get_raw(REVISIONS, "default/deep")
    in_an_event = b'{"type":"ADDED","object":{"items":[%b]}}' % raw
    assert from_json(in_an_event) == json.loads(in_an_event)
    assert store.list(REVISIONS).items[0] == store.get(REVISIONS, "default/deep")
    assert len(store.read_changes({REVISIONS: 0}, 0).entries) == 1
    script = "local event = cjson.decode(ARGV[1]) return event.type"
    assert store.io.execute("EVAL", script, 0, in_an_event) == b"ADDED"


@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 190, 198])
def test_what_is_deeper_is_refused(store: Store, levels: int, lists: bool) -> None:
    with pytest.raises(errors.BadRequest, match="nested 128 levels deep"):
        store.create(deep_revision(levels, lists=lists))
    assert store.count(REVISIONS) == 0


def test_managers_of_deep_fields_count(store: Store) -> None:
    """The managed fields repeat the fields, nested three levels deeper."""
    store.create(deep_revision(MAX_DEPTH))
    store.delete(REVISIONS, "default/deep")
    with pytest.raises(errors.BadRequest, match="managers included"):
        store.create(deep_revision(MAX_DEPTH), manager=FieldManager("me"))


def test_a_merge_does_not_come_past_the_limit(store: Store) -> None:
    store.create(revision("a"))
    refusals = (errors.BadRequest, errors.Invalid)  # the data of a revision never change
    for levels in (150, 900):
        with pytest.raises(refusals):
            store.patch(REVISIONS, "default/a", {"data": nest(levels)})
    with pytest.raises(refusals):
        apply(store, deep_revision(150))
    assert store.get(REVISIONS, "default/a").name == "a"


@pytest.mark.parametrize("kind", ["ADDED", "APPLY", "MODIFIED"])
@pytest.mark.parametrize("levels", [150, 199, 600, 5000])
def test_an_injected_event_is_refused(io: RedisIO, store: Store, kind: str, levels: int) -> None:
    store.create(revision("here"))
    bus = EventBus(Store(io))
    bus.ensure_group()
    name = "new" if kind == "ADDED" else "here"
    deep = b'"data":' + b'{"a":' * levels + b"1" + b"}" * levels
    body = codec.encode(revision(name)).replace(b'"data":{}', deep)
    io.execute("XADD", io.keys.events(), "*", "type", kind, "object", body)
    ((entry, fields),) = bus.read("me", 100)
    assert bus.process(entry, fields) in {"BadRequest", "Invalid"}
    assert [item.name for item in store.list(REVISIONS).items] == ["here"]


@pytest.mark.parametrize(
    "value",
    [b"1e400", b"-1e400", b"1" * 400, b"NaN", b"-Infinity", b'"\\ud800"', b'"\xed\xa0\x80"'],
)
def test_what_no_reader_can_say_is_refused(value: bytes) -> None:
    text = codec.encode(revision("a")).replace(b'"data":{}', b'"data":{"x":%b}' % value)
    for strict in (False, True):
        with pytest.raises(errors.BadRequest, match="not JSON"):
            codec.decode(text, REVISIONS, strict=strict)


@pytest.mark.parametrize("value", [b"1e308", b"1" * 300, b"0.1e-400", b"1e+00010"])
def test_large_numbers_that_all_can_read_are_taken(value: bytes) -> None:
    text = codec.encode(revision("a")).replace(b'"data":{}', b'"data":{"x":%b}' % value)
    obj = codec.decode(text, REVISIONS)
    assert codec.decode(codec.encode(obj), REVISIONS) == obj


def test_what_was_too_deep_before_there_was_a_limit_can_be_deleted(
    io: RedisIO, store: Store
) -> None:
    store.create(revision("a"))
    key = io.keys.object(REVISIONS.name, "default/a")
    body = codec.encode(deep_revision(190)).replace(b'"name":"deep"', b'"name":"a"')
    stored = store.get(REVISIONS, "default/a")
    version = b'"metadata":{"resourceVersion":"%s","uid":"%s",' % (
        str(stored.metadata.resource_version).encode(),
        str(stored.uid).encode(),
    )
    io.execute("HSET", key, "json", body.replace(b'"metadata":{', version))
    store.delete(REVISIONS, "default/a")
    assert store.count(REVISIONS) == 0
