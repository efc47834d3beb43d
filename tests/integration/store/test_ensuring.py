"""Tests how the objects that every cluster has are created together."""

from __future__ import annotations

import pytest

from kcm.api.core_v1 import Namespace
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.redisio import RedisIO
from kcm.store import Store
from kcm.store.admission.ensuring import ensure_objects
from tests.integration.store.damages import DAMAGES, Damage

NAMESPACES = Namespace.resource


def namespace(name: str, **labels: str) -> Namespace:
    return Namespace(metadata=ObjectMeta(name=name, labels=labels or None))


def list_names(store: Store) -> list[str | None]:
    return [obj.name for obj in store.list(NAMESPACES).items]


def test_what_is_missing_is_created_and_what_is_there_is_returned(io: RedisIO) -> None:
    store = Store(io)
    store.create(namespace("b", made="before"))
    wanted = [namespace("a"), namespace("b"), namespace("c")]
    ((asked_for, stored),) = ensure_objects(store, wanted)
    assert asked_for is wanted[1]
    assert stored.labels["made"] == "before"
    assert list_names(store) == ["a", "b", "c"]


def test_nothing_is_written_if_nothing_is_missing(io: RedisIO) -> None:
    store = Store(io)
    wanted = [namespace("a"), namespace("b")]
    assert ensure_objects(store, wanted) == []
    version = store.resource_version()
    assert len(ensure_objects(store, wanted)) == 2
    assert store.resource_version() == version


@pytest.mark.redis_only
@pytest.mark.parametrize("harm", DAMAGES.values(), ids=list(DAMAGES))
def test_what_cannot_be_read_is_replaced_and_the_others_are_created(
    io: RedisIO, harm: Damage
) -> None:
    store = Store(io)
    store.create(namespace("bad"))
    harm(io, io.keys.object(NAMESPACES.name, "bad"))
    ensure_objects(store, [namespace("bad"), namespace("good")])
    assert list_names(store) == ["bad", "good"]


def test_what_another_server_creates_at_the_same_time_stays(io: RedisIO) -> None:
    store, other = Store(io), Store(io)

    class Slow(Store):
        """Another server creates the object after this one has looked for it."""

        def get_all(self, wanted: object) -> list[None]:
            other.create(namespace("a", made="by-the-other"))
            return [None]

    assert ensure_objects(Slow(io), [namespace("a")]) == []
    assert store.get(NAMESPACES, "a").labels["made"] == "by-the-other"
