"""Which APIServices lead to another server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kcm.api.apiregistration_v1 import APIService
from kcm.apiserver.aggregation.index import ApiIndex, describe
from kcm.apiserver.cache.entries import Entry
from kcm.apiserver.cache.watch_cache import WatchCache
from kcm.http.faults import CallFailed
from kcm.http.trust import build_context
from tests.samples import sample

NAME = "apiservices.apiregistration.k8s.io"
RESOURCE = APIService.resource


def changed(name: str = "", **spec: Any) -> APIService:
    service = sample(NAME)
    group, version = (
        spec.get("group", service.spec.group),
        spec.get("version", service.spec.version),
    )
    named = service.with_metadata(name=name or f"{version}.{group or ''}")
    made: APIService = named.with_spec(service.spec.replace(**spec))
    return made


def test_an_api_service_leads_to_a_port_of_a_service() -> None:
    api = describe(changed(ca_bundle="aGVsbG8="))
    assert api is not None
    assert (api.path, api.name) == (
        "/apis/fruits.example.com/v1alpha1",
        "v1alpha1.fruits.example.com",
    )
    assert (api.service.key, api.service.port) == ("default/fruits", 443)
    assert api.service.server_name == "fruits.default.svc"
    assert (api.authority, api.insecure, api.available) == (b"hello", True, False)


@pytest.mark.parametrize(
    "service",
    [
        changed(service=None),
        changed(group="", version="v1"),
        changed(group="apiregistration.k8s.io", version="v1"),
        changed(name="v1.other.com"),
        changed(group="a/b"),
        changed(version="../v1"),
        changed(service=sample(NAME).spec.service.replace(name=None)),
    ],
)
def test_others_lead_nowhere(service: APIService) -> None:
    assert describe(service) is None


def test_a_bundle_that_is_none_is_known_as_such() -> None:
    api = describe(changed(ca_bundle="%"))
    assert api is not None
    with pytest.raises(CallFailed, match="unable to load root certificates"):
        build_context(replace(api, insecure=False).trust(b""))


class Caches:
    def __init__(self) -> None:
        self.only = WatchCache(RESOURCE)

    def cache(self, resource: Any) -> WatchCache[Any]:
        return self.only


def test_paths_are_found_by_group_and_version() -> None:
    caches = Caches()
    index = ApiIndex(caches)
    assert index.find("/apis/fruits.example.com/v1alpha1") is None
    caches.only.refill([Entry.build(RESOURCE, changed(), 1)], 1)
    for path in ("", "/", "/fruits", "/namespaces/a/fruits/b/status"):
        assert index.find(f"/apis/fruits.example.com/v1alpha1{path}") is not None
    for path in (
        "/apis",
        "/apis/fruits.example.com",
        "/apis/fruits.example.com/v1",
        "/api/fruits.example.com/v1alpha1",
        "/apis/fruits.example.com/v1alpha10/x",
    ):
        assert index.find(path) is None
    before = index.all()
    assert index.all() is before
    caches.only.refill([], 2)
    assert index.find("/apis/fruits.example.com/v1alpha1") is None
