"""Tests the event bus: which entries become objects, which are refused, and that no malformed entry
stops it.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kcm.api import codec
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.redisio import Fence, RedisIO
from kcm.store import Store
from kcm.store.eventbus import GROUP, EventBus
from kcm.testing.clock import FakeClock
from tests.new_objects import make_namespaces, pod, replica_set

pytestmark = pytest.mark.redis_only


@pytest.fixture
def bus(io: RedisIO, clock: FakeClock) -> EventBus:
    bus = EventBus(Store(io, clock))
    bus.ensure_group()
    return bus


def inject(io: RedisIO, event: str | bytes, obj: KubeObject | str | bytes, *more: Any) -> None:
    body = codec.encode(obj) if isinstance(obj, KubeObject) else obj
    io.execute("XADD", io.keys.events(), "*", "type", event, "object", body, *more)


def ingest(bus: EventBus) -> list[str]:
    return [bus.process(entry_id, fields) for entry_id, fields in bus.read("me", 1)]


def test_added_creates_with_the_status_it_carries(bus: EventBus, store: Store, io: RedisIO) -> None:
    inject(io, "ADDED", pod("a", phase="Running", node="n1"))
    assert ingest(bus) == ["applied"]
    stored = store.get(BUILT_IN.lookup("pods"), "default/a")
    assert codec.to_dict(stored)["status"]["phase"] == "Running"
    assert io.execute("XLEN", io.keys.events()) == 0


def test_modified_replaces_and_deleted_deletes(bus: EventBus, store: Store, io: RedisIO) -> None:
    inject(io, "ADDED", replica_set("web", replicas=1))
    inject(io, "MODIFIED", replica_set("web", replicas=4))
    assert ingest(bus) == ["applied", "applied"]
    assert codec.to_dict(store.list(BUILT_IN.lookup("rs")).items[0])["spec"]["replicas"] == 4
    inject(io, "DELETED", replica_set("web"))
    assert ingest(bus) == ["applied"]
    assert store.list(BUILT_IN.lookup("rs")).items == []


def test_apply_merges_three_ways(bus: EventBus, store: Store, io: RedisIO) -> None:
    resource = BUILT_IN.lookup("rs")
    inject(
        io,
        "APPLY",
        replica_set("web", replicas=2, labels={"a": "1", "b": "2"}, selector={"a": "1"}),
    )
    ingest(bus)
    store.patch(resource, "default/web", {"metadata": {"labels": {"mine": "kept"}}})
    inject(io, "APPLY", replica_set("web", replicas=3, labels={"a": "1"}, selector={"a": "1"}))
    assert ingest(bus) == ["applied"]
    stored = store.get(resource, "default/web")
    assert stored.metadata.labels == {"a": "1", "mine": "kept"}
    version = stored.metadata.resource_version
    inject(io, "APPLY", replica_set("web", replicas=3, labels={"a": "1"}, selector={"a": "1"}))
    assert ingest(bus) == ["applied"]
    assert store.get(resource, "default/web").metadata.resource_version == version


@pytest.mark.parametrize(
    ("event", "body", "reason"),
    [
        ("ADDED", b"\xff\xfe rubbish", "BadRequest"),
        ("ADDED", "[]", "BadRequest"),
        ("ADDED", '{"kind":"Pod"}', "BadRequest"),
        ("ADDED", '{"kind":"Nope","apiVersion":"v1"}', "BadRequest"),
        ("EXPLODE", "{}", "BadRequest"),
        ("MODIFIED", codec.encode(pod("nobody")), "NotFound"),
        ("DELETED", codec.encode(pod("nobody")), "NotFound"),
        ("ADDED", codec.encode(replica_set("web", replicas=-1)), "Invalid"),
    ],
)
def test_what_is_refused_keeps_its_reason_and_its_fields(
    bus: EventBus, io: RedisIO, event: str, body: bytes, reason: str
) -> None:
    inject(io, event, body)
    assert ingest(bus) == [reason]
    letter = bus.list_dead_letters()[0]
    assert letter.reason == reason
    assert letter.message
    assert letter.fields["type"] == event
    assert io.execute("XLEN", io.keys.events()) == 0


def test_an_added_of_what_exists_is_refused(bus: EventBus, io: RedisIO) -> None:
    inject(io, "ADDED", pod("a"))
    inject(io, "ADDED", pod("a"))
    assert ingest(bus) == ["applied", "AlreadyExists"]


def test_replay_puts_a_letter_back_as_it_came(bus: EventBus, store: Store, io: RedisIO) -> None:
    inject(io, "MODIFIED", replica_set("web", replicas=5), "note", "mine")
    ingest(bus)
    store.create(replica_set("web", replicas=1))
    assert bus.replay() == 1
    assert bus.list_dead_letters() == []
    assert ingest(bus) == ["applied"]
    assert codec.to_dict(store.list(BUILT_IN.lookup("rs")).items[0])["spec"]["replicas"] == 5


def test_an_entry_delivered_to_a_dead_ingester_comes_first(bus: EventBus, io: RedisIO) -> None:
    inject(io, "ADDED", pod("a"))
    assert len(bus.read("dead", 1)) == 1
    inject(io, "DELETED", pod("a"))
    assert ingest(bus) == ["applied"]
    assert ingest(bus) == ["applied"]
    assert bus.list_dead_letters() == []


def test_a_fenced_ingester_applies_and_refuses_nothing(bus: EventBus, io: RedisIO) -> None:
    from kcm import errors

    inject(io, "ADDED", pod("a"))
    inject(io, "ADDED", "rubbish")
    for entry_id, fields in bus.read("me", 1):
        with pytest.raises(errors.Fenced):
            bus.process(entry_id, fields, Fence("kcm:lease:ingest", "token", "9"))
    assert io.execute("XLEN", io.keys.events()) == 2
    assert bus.list_dead_letters() == []
    assert io.execute("XPENDING", io.keys.events(), GROUP)["pending"] == 2


def test_an_entry_with_thousands_of_fields_is_refused_not_fatal(bus: EventBus, io: RedisIO) -> None:
    pairs = [part for n in range(9000) for part in (f"f{n}", "x")]
    io.execute("XADD", io.keys.events(), "*", *pairs)
    inject(io, "ADDED", pod("after"))
    assert ingest(bus) == ["BadRequest", "applied"]


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.dictionaries(st.sampled_from(["type", "object", "x"]) | st.text(max_size=5),
                    st.binary(max_size=40) | st.text(max_size=40)
                    | st.sampled_from(["ADDED", "APPLY", '{"kind":"Pod","apiVersion":"v1"}']),
                    min_size=1, max_size=4)
)  # fmt: skip
def test_no_rubbish_stops_the_bus(
    bus: EventBus, io: RedisIO, fields: dict[str, str | bytes]
) -> None:
    flat = [part for pair in fields.items() for part in pair]
    io.execute("XADD", io.keys.events(), "*", *flat)
    assert len(ingest(bus)) == 1
    assert io.execute("XLEN", io.keys.events()) == 0


def test_the_readme_form_of_an_event_is_accepted(bus: EventBus, io: RedisIO) -> None:
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
    }
    inject(io, "APPLY", json.dumps(manifest))
    assert ingest(bus) == ["applied"]


def test_services_get_addresses_and_keep_the_status_they_carry(
    bus: EventBus, store: Store, io: RedisIO
) -> None:
    body = {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"type": "NodePort", "ports": [{"port": 80}]},
    }  # fmt: skip
    inject(io, "ADDED", json.dumps(body))
    assert ingest(bus) == ["applied"]
    spec = codec.to_dict(store.get(BUILT_IN.lookup("svc"), "default/web"))["spec"]
    assert spec["clusterIP"].startswith("10.")
    assert spec["ports"][0]["nodePort"] >= 30000


def test_events_obey_the_lifecycle_of_namespaces(bus: EventBus, store: Store, io: RedisIO) -> None:
    inject(io, "ADDED", pod("a", namespace="none"))
    assert ingest(bus) == ["NotFound"]
    make_namespaces(store, "going")
    store.delete(BUILT_IN.lookup("ns"), "going")
    inject(io, "APPLY", pod("a", namespace="going"))
    assert ingest(bus) == ["Forbidden"]
    inject(io, "DELETED", '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default"}}')
    store.create(pod("b"))  # brings the namespace into being
    assert ingest(bus) == ["Forbidden"]
    reasons = [letter.reason for letter in bus.list_dead_letters()]
    assert reasons == ["Forbidden", "Forbidden", "NotFound"]
