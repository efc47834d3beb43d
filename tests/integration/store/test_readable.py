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
from tests.new_objects import pod

pytestmark = pytest.mark.redis_only

PODS = BUILT_IN.lookup("pods")


def nest(levels: int, *, lists: bool = False) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value] if lists else {"a": value}
    return value


def deep_pod(levels: int, *, lists: bool = False) -> Any:
    """Returns a pod whose body is nested `levels` deep."""
    body = codec.to_dict(pod("deep"))
    body["x"] = nest(levels - 1, lists=lists)
    return codec.decode(body, PODS)


@pytest.fixture
def store(io: RedisIO) -> Store:
    return Store(io)


@pytest.mark.parametrize("lists", [False, True])
def test_every_reader_reads_what_is_as_deep_as_allowed(store: Store, lists: bool) -> None:
    store.create(deep_pod(MAX_DEPTH, lists=lists))
    raw = store.get_raw(PODS, "default/deep")
    in_an_event = b'{"type":"ADDED","object":{"items":[%b]}}' % raw
    assert from_json(in_an_event) == json.loads(in_an_event)
    assert store.list(PODS).items[0] == store.get(PODS, "default/deep")
    assert len(store.read_changes({PODS: 0}, 0).entries) == 1
    script = "local event = cjson.decode(ARGV[1]) return event.type"
    assert store.io.execute("EVAL", script, 0, in_an_event) == b"ADDED"


@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 190, 198])
def test_what_is_deeper_is_refused(store: Store, levels: int, lists: bool) -> None:
    with pytest.raises(errors.BadRequest, match="nested 128 levels deep"):
        store.create(deep_pod(levels, lists=lists))
    assert store.count(PODS) == 0


def test_managers_of_deep_fields_count(store: Store) -> None:
    """The managed fields repeat the fields, nested three levels deeper."""
    store.create(deep_pod(MAX_DEPTH))
    store.delete(PODS, "default/deep")
    with pytest.raises(errors.BadRequest, match="managers included"):
        store.create(deep_pod(MAX_DEPTH), manager=FieldManager("me"))


def test_a_merge_does_not_come_past_the_limit(store: Store) -> None:
    store.create(pod("a"))
    with pytest.raises(errors.BadRequest, match="nested"):
        store.patch(PODS, "default/a", {"x": nest(150)})
    with pytest.raises(errors.BadRequest):
        store.patch(PODS, "default/a", {"x": nest(900)})
    with pytest.raises(errors.BadRequest):
        apply(store, deep_pod(150))
    assert store.get(PODS, "default/a").name == "a"


@pytest.mark.parametrize("kind", ["ADDED", "APPLY", "MODIFIED"])
@pytest.mark.parametrize("levels", [150, 199, 600, 5000])
def test_an_injected_event_is_refused(io: RedisIO, store: Store, kind: str, levels: int) -> None:
    store.create(pod("here"))
    bus = EventBus(Store(io))
    bus.ensure_group()
    name = "new" if kind == "ADDED" else "here"
    body = codec.encode(pod(name))[:-1] + b',"x":' + b'{"a":' * levels + b"1" + b"}" * levels + b"}"
    io.execute("XADD", io.keys.events(), "*", "type", kind, "object", body)
    ((entry, fields),) = bus.read("me", 100)
    assert bus.process(entry, fields) in {"BadRequest", "Invalid"}
    assert [item.name for item in store.list(PODS).items] == ["here"]


@pytest.mark.parametrize(
    "value",
    [b"1e400", b"-1e400", b"1" * 400, b"NaN", b"-Infinity", b'"\\ud800"', b'"\xed\xa0\x80"'],
)
def test_what_no_reader_can_say_is_refused(value: bytes) -> None:
    text = codec.encode(pod("a"))[:-1] + b',"x":' + value + b"}"
    for strict in (False, True):
        with pytest.raises(errors.BadRequest, match="not JSON"):
            codec.decode(text, PODS, strict=strict)


@pytest.mark.parametrize("value", [b"1e308", b"1" * 300, b"0.1e-400", b"1e+00010"])
def test_large_numbers_that_all_can_read_are_taken(value: bytes) -> None:
    text = codec.encode(pod("a"))[:-1] + b',"x":' + value + b"}"
    obj = codec.decode(text, PODS)
    assert codec.decode(codec.encode(obj), PODS) == obj


def test_what_was_too_deep_before_there_was_a_limit_can_be_deleted(
    io: RedisIO, store: Store
) -> None:
    store.create(pod("a"))
    key = io.keys.object("pods", "default/a")
    body = codec.encode(deep_pod(190)).replace(b'"name":"deep"', b'"name":"a"')
    stored = store.get(PODS, "default/a")
    version = b'"metadata":{"resourceVersion":"%s","uid":"%s",' % (
        str(stored.metadata.resource_version).encode(),
        str(stored.uid).encode(),
    )
    io.execute("HSET", key, "json", body.replace(b'"metadata":{', version))
    store.delete(PODS, "default/a")
    assert store.count(PODS) == 0
