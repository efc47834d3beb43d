"""The watch cache over the real store, turn by turn."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kcm import errors
from kcm.api import scheme
from kcm.apiserver.cache import hub as module
from kcm.apiserver.cache.hub import Hub
from kcm.apiserver.refusals import TooLargeResourceVersion
from kcm.redisio import RedisIO
from kcm.store import Store
from kcm.store.admission import namespaces
from kcm.store.trim import Retention, trim
from tests import new_objects as strip_store_fields

PODS = scheme.by_name("pods")


def nothing() -> None:
    return


@pytest.fixture
def store(io: RedisIO) -> Store:
    return Store(io)


@pytest.fixture
def hub(store: Store) -> Hub:
    return Hub(store)


def keys(hub: Hub) -> list[str]:
    return [entry.key for entry in hub.cache(PODS).entries()]


def test_objects_are_listed_once_and_then_followed(store: Store, hub: Hub) -> None:
    store.create(strip_store_fields.pod("a"))
    hub.turn(0)
    assert hub.synced
    _, feed = hub.cache(PODS).subscribe(store.resource_version(), "", nothing)
    store.create(strip_store_fields.pod("b"))
    store.delete(PODS, "default/a")
    hub.turn(0)
    assert keys(hub) == ["default/b"]
    assert [event.type for event in feed.pending] == ["ADDED", "DELETED"]


def test_what_was_trimmed_unread_is_listed_again_and_watchers_are_told(
    io: RedisIO, store: Store, hub: Hub
) -> None:
    hub.turn(0)
    _, feed = hub.cache(PODS).subscribe(store.resource_version(), "", nothing)
    for name in ("a", "b"):
        store.create(strip_store_fields.pod(name))
    trim(io, [PODS], Retention(timedelta(0), 0))
    hub.turn(0)
    hub.turn(0)
    assert keys(hub) == ["default/a", "default/b"]
    assert feed.gone
    with pytest.raises(errors.Gone):
        hub.cache(PODS).subscribe(1, "", nothing)


def test_freshness_waits_for_the_store_and_no_longer_than_told(
    store: Store, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FRESH_TIMEOUT", 0.01)
    with pytest.raises(errors.StoreUnavailable):
        hub.cached(PODS)
    hub.turn(0)
    assert hub.fresh(PODS) == store.resource_version()
    store.create(strip_store_fields.pod("a"))
    with pytest.raises(errors.StoreUnavailable):
        hub.fresh(PODS)
    hub.turn(0)
    assert hub.at_least(PODS, 1) >= 1
    with pytest.raises(TooLargeResourceVersion):
        hub.at_least(PODS, 10**9)


def test_the_systems_namespaces_are_made_once(store: Store) -> None:
    namespaces.ensure(store)
    version = store.resource_version()
    namespaces.ensure(store)
    assert store.resource_version() == version
    assert store.count(scheme.by_name("namespaces")) == 4
