from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.cache.entries import Entry
from kcm.apiserver.cache.watch_cache import WatchCache
from kcm.store import WatchEntry
from kcm.store.watch import ChangeType

PODS = Pod.resource


def raw(name: str, app: str) -> bytes:
    metadata: dict[str, Any] = {"name": name, "namespace": "a", "labels": {"app": app}}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}).encode()


def change(kind: ChangeType, name: str, app: str, version: int) -> WatchEntry:
    return WatchEntry(PODS, version, kind, f"a/{name}", raw(name, app))


def app_of(obj: KubeObject) -> str:
    return obj.labels["app"]


def fill_cache(**apps: str) -> WatchCache[Pod]:
    cache = WatchCache(PODS)
    cache.refill([Entry(PODS, f"a/{name}", raw(name, app), 1) for name, app in apps.items()], 1)
    return cache


def find(cache: WatchCache[Pod], app: str) -> list[str]:
    return [entry.key for entry in cache.index("app", app_of).find(app)]


def test_objects_are_found_by_their_value_in_the_order_of_their_keys() -> None:
    cache = fill_cache(c="web", a="web", b="db")
    assert (find(cache, "web"), find(cache, "db"), find(cache, "x")) == (
        ["a/a", "a/c"], ["a/b"], [],
    )  # fmt: skip


def test_an_index_is_made_once() -> None:
    cache = fill_cache(a="web")
    assert cache.index("app", app_of) is cache.index("app", app_of)


def test_what_a_list_no_longer_has_is_not_found() -> None:
    cache = fill_cache(a="web")
    assert find(cache, "web") == ["a/a"]
    cache.refill([Entry(PODS, "a/b", raw("b", "web"), 2)], 2)
    assert find(cache, "web") == ["a/b"]


def test_objects_are_looked_at_when_somebody_asks() -> None:
    seen: list[str] = []

    def note(obj: KubeObject) -> str:
        seen.append(obj.name)
        return "x"

    cache = fill_cache(a="web")
    index = cache.index("seen", note)
    cache.apply([change("MODIFIED", "a", "db", 2), change("MODIFIED", "a", "web", 3)], 3)
    assert seen == []
    index.find("x")
    index.find("x")
    assert seen == ["a"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ADDED", "MODIFIED", "DELETED", "FIND"]),
            st.sampled_from("abc"),
            st.sampled_from(["web", "db"]),
        )
    )
)
def test_after_any_changes_the_index_finds_what_a_scan_finds(
    steps: list[tuple[Any, str, str]],
) -> None:
    cache = fill_cache(a="web", b="db")
    for version, (kind, name, app) in enumerate(steps, 2):
        if kind == "FIND":
            find(cache, app)
        else:
            cache.apply([change(kind, name, app, version)], version)
    for app in ("web", "db"):
        assert find(cache, app) == [one.key for one in cache.entries() if app_of(one.obj) == app]
