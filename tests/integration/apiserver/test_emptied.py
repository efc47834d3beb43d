"""The keys of a live server are deleted: the server and all its clients notice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from kcm.redisio import RedisIO
from kcm.redisio.embedded import EmbeddedServer
from kcm.settings import Settings
from kcm.testing.waiting import until
from tests.integration.apiserver.serving import Live, live
from tests.new_objects import pod


@pytest.fixture
def api(redis_server: EmbeddedServer, tmp_path: Path) -> Iterator[Live]:
    with live(redis_server.url, tmp_path) as running:
        yield running


def empty(settings: Settings) -> None:
    io = RedisIO(settings)
    keys = list(io.scan(f"{settings.prefix}:*"))
    io.execute("DEL", *keys)
    io.close()


def names(api: Live, path: str) -> list[str]:
    return [item["metadata"]["name"] for item in api.get(path)["items"]]


def test_old_objects_go_and_new_ones_show(api: Live) -> None:
    for number in range(5):
        api.store.create(pod(f"old{number}"))
    assert len(names(api, "/api/v1/namespaces/default/pods")) == 5
    empty(api.settings)
    until(lambda: names(api, "/api/v1/pods") == [], "old pods to go")
    until(lambda: "default" in names(api, "/api/v1/namespaces"), "the system's namespaces")
    body = {"metadata": {"name": "new"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    api.create("/api/v1/namespaces/default/pods", body)
    assert names(api, "/api/v1/pods") == ["new"]


def test_the_roles_are_made_again(api: Live) -> None:
    empty(api.settings)
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    until(lambda: "cluster-admin" in names(api, path), "the roles")
    until(lambda: api.client.get("/readyz").status_code == 200, "the server")


def test_a_watch_ends_with_410_and_its_client_lists_again(api: Live) -> None:
    api.store.create(pod("old"))
    version = api.get("/api/v1/pods")["metadata"]["resourceVersion"]
    timeout = httpx.Timeout(10, read=30)
    params = {"watch": "1", "resourceVersion": version}
    with api.client.stream("GET", "/api/v1/pods", params=params, timeout=timeout) as response:
        empty(api.settings)
        lines = list(response.iter_lines())
    assert not lines or '"code":410' in lines[-1]
    assert names(api, "/api/v1/pods") == []
