"""Objects of a custom kind are rewritten when its storage version changes."""

from __future__ import annotations

import json

import pytest

from kcm import errors
from kcm.redisio import Fence
from kcm.store.writes.collections import Rewriting
from kcm.testing.waiting import until
from tests.integration.apiserver.definitions import version
from tests.integration.apiserver.serving import Live
from tests.integration.apiserver.test_custom_kinds import Kind

NAMES = [f"c{number}" for number in range(7)]


@pytest.fixture
def kind(api: Live) -> Kind:
    """Returns CronTabs that are stored in v1, of a kind whose storage version is v2 now."""
    made = Kind(api, versions=[version("v1", storage=True), version("v2", storage=False)])
    for name in NAMES:
        made.create(name)
    definition = api.get(made.crd)
    for one in definition["spec"]["versions"]:
        one["storage"] = one["name"] == "v2"
    assert api.request("PUT", made.crd, definition).status_code == 200
    until(lambda: api.store_resource(made.group).version == "v2")
    return made


def stored(api: Live, kind: Kind, name: str) -> str:
    raw = api.store.get_raw(api.store_resource(kind.group), f"default/{name}")
    text: str = json.loads(raw)["apiVersion"].rpartition("/")[2]
    return text


def test_pages_are_rewritten_one_after_the_other(api: Live, kind: Kind) -> None:
    resource = api.store_resource(kind.group)
    before = {name: api.get(kind.path(name)) for name in NAMES}
    kind.api.patch(kind.path("c1"), {"metadata": {"labels": {"a": "b"}}})
    first = api.store.rewrite_page(resource, "", 4)
    assert first == Rewriting("default/c3", rewritten=3)  # c1 was written meanwhile
    assert [stored(api, kind, name) for name in NAMES] == ["v2"] * 4 + ["v1"] * 3
    assert api.store.rewrite_page(resource, first.after, 4) == Rewriting("default/c6", rewritten=3)
    assert api.store.rewrite_page(resource, "default/c6", 4) == Rewriting()
    assert api.store.rewrite_page(resource, "", 100) == Rewriting("default/c6")
    after = api.get(kind.path("c0"))
    assert after["spec"] == before["c0"]["spec"]
    assert after["metadata"]["uid"] == before["c0"]["metadata"]["uid"]
    assert after["metadata"]["resourceVersion"] != before["c0"]["metadata"]["resourceVersion"]


def test_what_cannot_be_read_costs_itself_only(api: Live, kind: Kind) -> None:
    resource = api.store_resource(kind.group)
    io = api.store.io
    io.execute("HSET", io.keys.object(resource.name, "default/c2"), "json", b"{")
    page = api.store.rewrite_page(resource, "", 100)
    assert (page.rewritten, page.failed, type(page.error)) == (6, 1, errors.Damaged)


def test_a_lost_fence_rewrites_nothing(api: Live, kind: Kind) -> None:
    resource = api.store_resource(kind.group)
    with pytest.raises(errors.Fenced):
        api.store.rewrite_page(resource, "", 100, fence=Fence("none", "x", "1"))
    assert {stored(api, kind, name) for name in NAMES} == {"v1"}
