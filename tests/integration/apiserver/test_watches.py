"""Watches over HTTP."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kcm.api.core_v1 import Pod
from kcm.apiserver.objects import watching
from tests.integration.apiserver.manifests import pod, replica_set
from tests.integration.apiserver.serving import Live

_NAMES = itertools.count()


@pytest.fixture
def pods(api: Live) -> str:
    name = f"watch{next(_NAMES)}"
    api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    return f"/api/v1/namespaces/{name}/pods"


@contextmanager
def watch(
    api: Live, path: str, accept: str = "application/json", **params: Any
) -> Iterator[Iterator[dict[str, Any]]]:
    query = {"watch": "true", "timeoutSeconds": "20"} | params
    with api.client.stream("GET", path, params=query, headers={"accept": accept}) as response:
        assert response.status_code == 200, response.read()
        yield (json.loads(line) for line in response.iter_lines())


def summarize(event: dict[str, Any]) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"]["name"]


def test_changes_after_a_version_come_once_and_in_order(api: Live, pods: str) -> None:
    api.create(pods, pod("before"))
    version = api.get(pods)["metadata"]["resourceVersion"]
    with watch(api, pods, resourceVersion=version) as events:
        api.create(pods, pod("one"))
        api.patch(f"{pods}/one", {"metadata": {"labels": {"a": "b"}}})
        api.client.delete(f"{pods}/one")
        changes = [summarize(next(events)) for _ in range(3)]
    assert changes == [("ADDED", "one"), ("MODIFIED", "one"), ("DELETED", "one")]
    with watch(api, pods, resourceVersion=version) as events:
        assert [summarize(next(events)) for _ in range(3)] == changes


def test_what_is_removed_at_once_is_sent_in_its_last_state(api: Live, pods: str) -> None:
    sets = pods.replace("/api/v1", "/apis/apps/v1").replace("pods", "replicasets")
    created = api.create(sets, replica_set("gone"))
    version = created["metadata"]["resourceVersion"]
    with watch(api, sets, resourceVersion=version) as events:
        api.client.delete(f"{sets}/gone")
        event = next(events)
    assert event["type"] == "DELETED"
    assert int(event["object"]["metadata"].pop("resourceVersion")) > int(version)
    del created["metadata"]["resourceVersion"]
    assert event["object"] == created


def test_without_a_version_the_present_objects_come_first(api: Live, pods: str) -> None:
    api.create(pods, pod("present"))
    for params in ({}, {"resourceVersion": "0"}):
        with watch(api, pods, **params) as events:
            assert summarize(next(events)) == ("ADDED", "present")


def test_initial_events_end_with_a_marked_bookmark(api: Live, pods: str) -> None:
    api.create(pods, pod("present"))
    with watch(
        api, pods, sendInitialEvents="true", allowWatchBookmarks="true",
        resourceVersionMatch="NotOlderThan",
    ) as events:  # fmt: skip
        assert summarize(next(events)) == ("ADDED", "present")
        bookmark = next(events)
        assert bookmark["type"] == "BOOKMARK"
        meta = bookmark["object"]["metadata"]
        assert meta["annotations"] == {"k8s.io/initial-events-end": "true"}
        api.create(pods, pod("late"))
        assert summarize(next(events)) == ("ADDED", "late")
    with watch(api, pods, resourceVersion=meta["resourceVersion"]) as events:
        assert summarize(next(events)) == ("ADDED", "late")


@pytest.mark.parametrize("version", [{}, {"resourceVersion": "0"}])
def test_without_initial_events_a_watch_begins_now(
    api: Live, pods: str, version: dict[str, str]
) -> None:
    api.create(pods, pod("present"))
    api.get(pods)  # version 0 begins with what the cache has, and a list makes it have all
    options = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan"} | version
    with watch(api, pods, **options) as events:
        api.create(pods, pod("late"))
        assert summarize(next(events)) == ("ADDED", "late")


def test_the_initial_events_are_as_new_as_the_request(api: Live, pods: str) -> None:
    """Each write was acknowledged before the watch began, so its bookmark comes after it."""
    options = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    for number in range(20):
        written = api.create(pods, pod(f"p{number}"))["metadata"]["resourceVersion"]
        newer = {"resourceVersion": written} if number % 2 else {}
        with watch(api, pods, allowWatchBookmarks="true", **options, **newer) as events:
            came = [next(events) for _ in range(number + 2)]
        assert {summarize(event)[1] for event in came[:-1]} == {f"p{n}" for n in range(number + 1)}
        assert came[-1]["type"] == "BOOKMARK"
        assert int(came[-1]["object"]["metadata"]["resourceVersion"]) >= int(written)


def test_a_version_that_no_write_has_reached_is_refused(api: Live, pods: str) -> None:
    options = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "watch": "1"}
    params = options | {"allowWatchBookmarks": "true", "resourceVersion": str(4 * 10**15)}
    refused = api.client.get(pods, params=params)
    assert refused.status_code == 504
    assert refused.json()["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


def test_what_begins_to_match_is_added_and_what_stops_is_deleted(api: Live, pods: str) -> None:
    api.create(pods, pod("turncoat"))
    version = api.get(pods)["metadata"]["resourceVersion"]
    with watch(api, pods, resourceVersion=version, labelSelector="side=left") as events:
        for side in ("left", "left", "right"):
            labels = {"side": side, "step": f"{side}{next(_NAMES)}"}
            api.patch(f"{pods}/turncoat", {"metadata": {"labels": labels}})
        came = [next(events) for _ in range(3)]
    assert [event["type"] for event in came] == ["ADDED", "MODIFIED", "DELETED"]
    before, after = came[1]["object"]["metadata"], came[2]["object"]["metadata"]
    assert after["labels"] == before["labels"]  # as it was when it matched, as upstream
    now = api.get(f"{pods}/turncoat")["metadata"]["resourceVersion"]
    assert after["resourceVersion"] == now


def test_one_object_is_watched_by_its_path(api: Live, pods: str) -> None:
    api.create(pods, pod("a"))
    api.create(pods, pod("b"))
    with watch(api, f"{pods}/b") as events:
        assert summarize(next(events)) == ("ADDED", "b")


def test_a_version_that_is_gone_is_told_in_the_stream(api: Live, pods: str) -> None:
    with watch(api, pods, resourceVersion="1") as events:
        event = next(events)
        assert event["type"] == "ERROR"
        assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
        assert list(events) == []


def test_a_watch_ends_with_its_timeout(api: Live, pods: str) -> None:
    with watch(api, pods, timeoutSeconds="1") as events:
        assert list(events) == []


def test_bookmarks_come_to_who_asked_for_them(
    api: Live, pods: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "BOOKMARK_EVERY", 0.1)
    with watch(api, pods, allowWatchBookmarks="true") as events:
        event = next(events)
        assert (event["type"], event["object"]["kind"]) == ("BOOKMARK", "Pod")
        assert int(event["object"]["metadata"]["resourceVersion"]) > 0


def test_a_bookmark_comes_before_the_timeout(api: Live, pods: str) -> None:
    with watch(api, pods, allowWatchBookmarks="true", timeoutSeconds="3") as events:
        came = list(events)
    assert [event["type"] for event in came] == ["BOOKMARK"]


def test_tables_can_be_watched(api: Live, pods: str) -> None:
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    with watch(api, pods, accept) as events:
        api.create(pods, pod("one"))
        api.create(pods, pod("two"))
        first, second = next(events), next(events)
    assert first["object"]["columnDefinitions"][0]["name"] == "Name"
    assert second["object"]["columnDefinitions"] is None
    assert second["object"]["rows"][0]["cells"][0] == "two"


def test_watchers_are_forgotten_when_they_leave(api: Live, pods: str) -> None:
    cache = api.app.cacher.cache(Pod.resource)
    with watch(api, pods) as events:
        api.create(pods, pod("one"))
        next(events)
        assert cache.watcher_count == 1
    for _ in range(100):
        if cache.watcher_count == 0:
            return
        api.client.get("/livez")
    raise AssertionError("a watcher stayed")


def test_the_deprecated_paths_watch_as_well(api: Live, pods: str) -> None:
    api.create(pods, pod("this"))
    api.create(pods, pod("other"))
    old = pods.replace("/api/v1/", "/api/v1/watch/")
    with watch(api, f"{old}/this", watch="") as events:
        assert summarize(next(events)) == ("ADDED", "this")
    with watch(api, old, watch="") as events:
        assert {summarize(next(events)) for _ in range(2)} == {
            ("ADDED", "this"),
            ("ADDED", "other"),
        }
