"""Look-ups of ConfigMaps and Secrets: read for new pods, kept while the store is unavailable."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kcm import errors
from kcm.api.core_v1 import ConfigMap
from kcm.kubelet.environment.store_lookups import TTL, StaticPodLookups, StoreLookups
from kcm.store.objects import ObjectStore
from kcm.testing.builders import config_map
from kcm.testing.clock import FakeClock


class Api:
    """A store with one ConfigMap, which counts reads."""

    def __init__(self) -> None:
        self.stored: ConfigMap | None = None
        self.asked = 0
        self.away = False

    def find(self, resource: Any, key: str) -> Any:
        self.asked += 1
        if self.away:
            raise errors.StoreUnavailable
        return self.stored

    def in_namespace(self, *_: Any) -> list[Any]:
        stored = self.find(None, "")
        return [] if stored is None else [stored]


def build_lookups() -> tuple[Api, StoreLookups, FakeClock]:
    api, clock = Api(), FakeClock()
    return api, StoreLookups(cast("ObjectStore", api), clock), clock  # what is asked of it


def test_what_is_missing_is_asked_for_each_time() -> None:
    api, lookups, _ = build_lookups()
    assert lookups.config_map("default", "words") is None
    api.stored = config_map("words")
    assert lookups.config_map("default", "words") == api.stored


def test_what_was_read_is_good_for_a_while_unless_a_pod_came() -> None:
    api, lookups, clock = build_lookups()
    api.stored = config_map("words")
    for _ in range(3):
        lookups.config_map("default", "words")
    assert api.asked == 1
    clock.step(TTL)
    lookups.config_map("default", "words")
    assert api.asked == 2
    lookups.invalidate()
    lookups.config_map("default", "words")
    assert api.asked == 3


def test_while_the_store_is_away_the_last_known_is_used() -> None:
    api, lookups, clock = build_lookups()
    api.stored = config_map("words")
    lookups.config_map("default", "words")
    api.away = True
    clock.step(TTL)
    for _ in range(3):
        assert lookups.config_map("default", "words") == api.stored
    assert api.asked == 2  # not again and again


def test_what_was_never_read_holds_up_all_but_static_pods() -> None:
    api, lookups, _ = build_lookups()
    api.away = True
    with pytest.raises(errors.StoreUnavailable):
        lookups.services()
    assert list(StaticPodLookups(lookups).services()) == []
