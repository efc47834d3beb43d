"""Discovery, OpenAPI, caches and patches over custom kinds, without a server."""

from __future__ import annotations

import json

import pytest

from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.apiserver.cache.entries import CacheEvent, Entry
from kcm.apiserver.documents import discovery, openapi, priorities
from kcm.apiserver.http.bodies import client_warnings, patches
from kcm.apiserver.http_errors import UnsupportedMediaType
from tests.unit.apiextensions.samples import SCHEME, WHOLE, definition, serve, struct

OPENAPI = openapi.OpenApi(SCHEME)
DISCOVERY = discovery.Discovery(SCHEME)

V1 = struct(spec=struct(replicas=WHOLE | {"default": 1}))
V2 = struct(spec=struct(replicas=WHOLE | {"default": 2}))


def entry() -> Entry:
    resource = SCHEME.by_name("crontabs.example.com")
    body = {
        "apiVersion": "example.com/v1beta1",
        "kind": "CronTab",
        "metadata": {"name": "one", "namespace": "default"},
    }
    return Entry(resource, "default/one", json.dumps(body).encode(), 5)


@pytest.mark.parametrize(
    ("names", "ordered"),
    [
        (["v1beta1", "v2", "v1"], ["v2", "v1", "v1beta1"]),
        (["v1alpha1", "v1beta2", "v1beta10"], ["v1beta10", "v1beta2", "v1alpha1"]),
        (["foo", "v1alpha1", "bar"], ["v1alpha1", "bar", "foo"]),
    ],
)
def test_versions_are_preferred_as_upstream_orders_them(
    names: list[str], ordered: list[str]
) -> None:
    assert sorted(names, key=priorities.version_key) == ordered


def test_documents_follow_kinds_as_they_come_and_go() -> None:
    def groups() -> set[str]:
        return {g["name"] for g in json.loads(DISCOVERY.apis("").body)["groups"]}

    def paths() -> set[str]:
        return set(json.loads(OPENAPI.respond(["v3"], "").body)["paths"])

    with serve(definition(v1=V1)):
        assert "example.com" in groups()
        assert "apis/example.com/v1" in paths()
        definitions = json.loads(OPENAPI.respond(["v2"], "").body)["definitions"]
        assert "com.example.v1.CronTab" in definitions
    assert "example.com" not in groups()
    assert "apis/example.com/v1" not in paths()


def test_entries_are_seen_in_each_served_version() -> None:
    with serve(definition(v1=V1, v1beta1=V2)):
        stored, other = SCHEME.versions("crontabs.example.com")
        new_entry = entry()
        assert b'"apiVersion":"example.com/v1"' in new_entry.convert_to(stored).raw
        assert b'"apiVersion":"example.com/v1beta1"' in new_entry.convert_to(other).raw
        event = CacheEvent("ADDED", new_entry, None)
        assert event.convert_to(other) is event.convert_to(other)
        assert event.convert_to(other).line.startswith(b'{"type":"ADDED","object":{"kind"')


def test_built_in_kinds_are_sent_as_they_are_stored() -> None:
    pods = Pod.resource
    entry = Entry(pods, "default/p", b"{}", 1)
    assert entry.convert_to(pods) is entry


def test_strategic_patches_are_for_built_in_kinds() -> None:
    with serve(definition(v1=V1)):
        resource = SCHEME.by_name("crontabs.example.com")
        with pytest.raises(UnsupportedMediaType):
            patches.parse(patches.STRATEGIC, b"{}", resource)


def test_ordinary_definitions_come_without_warnings() -> None:
    assert client_warnings.of(definition(v1=V1)) == []


def test_what_is_dropped_is_nobodys() -> None:
    with serve(definition(v1=V1)):
        resource = SCHEME.by_name("crontabs.example.com")
        obj = codec.decode({"metadata": {"name": "n"}, "spec": {"x": 1}}, resource)
        assert codec.to_dict(client_warnings.prune(obj))["spec"] == {}


def test_a_kind_that_keeps_unknown_fields_is_but_an_object_in_version_2() -> None:
    loose = V1 | {"x-kubernetes-preserve-unknown-fields": True}
    with serve(definition(v1=loose)):
        document = json.loads(OPENAPI.respond(["v2"], "").body)["definitions"]
    (schemas,) = [schema for name, schema in document.items() if name.endswith(".CronTab")]
    assert set(schemas) == {"type", "x-kubernetes-group-version-kind"}
    assert schemas["type"] == "object"


def test_the_version_of_an_object_is_described_in_the_words_that_tools_look_for() -> None:
    document = json.loads(OPENAPI.respond(["v2"], "").body)["definitions"]
    (pod,) = [schema for name, schema in document.items() if name.endswith("core.v1.Pod")]
    assert pod["properties"]["apiVersion"]["description"].startswith(
        "APIVersion defines the versioned schema of this representation of an object."
    )
