"""Custom objects that a webhook converts between versions, through a real server of webhooks."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kcm.api.scheme import Resource
from kcm.store.remote.admitted import AdmittedStore
from kcm.store.remote.kubeconfig import load
from kcm.store.remote.rest import RestClient
from kcm.store.remote.store import RemoteStore
from kcm.store.remote.work import WorkState
from kcm.store.writes.collections import Rewriting
from kcm.testing.waiting import until
from tests.integration.apiserver.conversions import Gateways, gateways, message_of, server
from tests.integration.apiserver.serving import Live

__all__ = ["gateways", "server"]

OLD, NEW = {"hostPort": "shop:80"}, {"host": "shop", "port": 80}


# --- reading and writing one object


def test_an_object_is_read_in_every_version(gateways: Gateways) -> None:
    made = gateways.create("a")
    assert (made["spec"], gateways.stored("a")["spec"]) == (OLD, OLD)
    assert gateways.reviews() == []
    shown = gateways.api.get(gateways.path("a"))
    assert shown["apiVersion"] == f"{gateways.group}/v1"
    assert shown["spec"] == NEW
    assert shown["metadata"] == made["metadata"]
    [review] = gateways.reviews()
    assert review["desiredAPIVersion"] == f"{gateways.group}/v1"
    assert review["objects"] == [made]
    assert gateways.api.get(gateways.path("a", "v1alpha1"))["spec"] == OLD
    assert gateways.api.get(gateways.path("a", "v1beta1")) == made


def test_a_read_object_is_converted_once(gateways: Gateways) -> None:
    made = gateways.create("a")
    position = made["metadata"]["resourceVersion"]
    gateways.api.get(gateways.path(), resourceVersion=position)
    for _ in range(3):
        gateways.api.get(gateways.path("a"))
        gateways.api.get(gateways.path())
    assert len(gateways.reviews()) == 1


def test_an_object_is_stored_in_the_storage_version(gateways: Gateways) -> None:
    made = gateways.create("a", "v1")
    assert (made["spec"], made["apiVersion"]) == (NEW, f"{gateways.group}/v1")
    [review] = gateways.reviews()
    assert review["desiredAPIVersion"] == f"{gateways.group}/v1beta1"
    stored = gateways.stored("a")
    assert (stored["spec"], stored["apiVersion"]) == (OLD, f"{gateways.group}/v1beta1")
    assert stored["metadata"] == made["metadata"]
    fields = stored["metadata"]["managedFields"]
    assert [entry["apiVersion"] for entry in fields] == [f"{gateways.group}/v1"]


def test_an_object_is_changed_in_either_version(gateways: Gateways) -> None:
    api = gateways.api
    gateways.create("a")
    answer = api.patch(gateways.path("a"), {"spec": {"port": 81}})
    assert answer.json()["spec"] == {"host": "shop", "port": 81}
    assert len(gateways.reviews()) == 2  # one to read it, one to store it
    assert gateways.stored("a")["spec"] == {"hostPort": "shop:81"}
    body = api.get(gateways.path("a"))
    body["spec"]["host"] = "market"
    assert api.request("PUT", gateways.path("a"), body).status_code == 200
    assert gateways.stored("a")["spec"] == {"hostPort": "market:81"}
    assert api.get(gateways.path("a", "v1beta1"))["spec"] == {"hostPort": "market:81"}


def test_what_is_written_is_validated_in_the_version_of_the_request(gateways: Gateways) -> None:
    wrong = gateways.gateway("a", "v1")
    wrong["spec"]["port"] = 0
    refused = gateways.api.request("POST", gateways.path(), wrong)
    assert refused.status_code == 422
    assert "the port is a number above 0" in message_of(refused)
    assert gateways.reviews() == []


def test_an_object_is_applied_on_the_server(gateways: Gateways) -> None:
    api = gateways.api
    headers = {"content-type": "application/apply-patch+yaml"}
    for port in (80, 82):
        body = gateways.gateway("a", "v1")
        body["spec"]["port"] = port
        answer = api.client.patch(
            gateways.path("a"), json=body, params={"fieldManager": "me"}, headers=headers
        )
        assert answer.status_code in (200, 201), answer.text
    assert gateways.stored("a")["spec"] == {"hostPort": "shop:82"}


def test_status_and_scale_are_changed_in_another_version(gateways: Gateways) -> None:
    api = gateways.api
    gateways.create("a")
    api.patch(gateways.path("a"), {"spec": {"replicas": 1}})
    patched = api.patch(gateways.path("a") + "/status", {"status": {"phase": "Ready"}})
    assert patched.json()["status"] == {"phase": "Ready"}
    scaled = api.patch(gateways.path("a") + "/scale", {"spec": {"replicas": 3}})
    assert scaled.status_code == 200, scaled.text
    assert scaled.json()["spec"] == {"replicas": 3}
    stored = gateways.stored("a")
    assert stored["spec"] == OLD | {"replicas": 3}
    assert stored["status"] == {"phase": "Ready"}


def test_an_object_is_deleted_in_another_version(gateways: Gateways) -> None:
    api = gateways.api
    gateways.create("a", finalizers=["example.com/hold"])
    answer = api.client.delete(gateways.path("a"))
    assert answer.json()["spec"] == NEW
    api.patch(gateways.path("a"), {"metadata": {"finalizers": None}})
    gateways.create("b")
    listed = api.client.delete(gateways.path())
    assert [item["spec"] for item in listed.json()["items"]] == [NEW]
    assert api.get(gateways.path())["items"] == []


def test_labels_and_annotations_may_change_and_nothing_else(gateways: Gateways) -> None:
    made = gateways.create("a", labels={"own": "yes"})
    gateways.configure("mark")
    shown = gateways.api.get(gateways.path("a"))["metadata"]
    changed = {"labels": {"own": "yes", "by": "webhook"}, "annotations": {"from": "webhook"}}
    assert shown == made["metadata"] | changed
    listed = gateways.api.get(gateways.path(), labelSelector="by=webhook")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]


def test_fields_that_the_schema_does_not_have_are_dropped(gateways: Gateways) -> None:
    gateways.create("a")
    gateways.configure("unknown-field")
    assert gateways.api.get(gateways.path("a"))["spec"] == NEW


def test_a_dry_run_is_converted_and_not_stored(gateways: Gateways) -> None:
    api = gateways.api
    gateways.create("a")
    patch = {"spec": {"port": 81}}
    answer = api.patch(gateways.path("a"), patch, dryRun="All")
    assert answer.json()["spec"] == {"host": "shop", "port": 81}
    assert gateways.stored("a")["spec"] == OLD


def test_reviews_may_be_of_version_v1beta1(gateways: Gateways) -> None:
    gateways.create("a")
    gateways.configure("wrong-uid", conversionReviewVersions=["v2", "v1beta1", "v1"])
    assert gateways.api.get(gateways.path("a"))["spec"] == NEW  # its uid is not checked
    [asked] = gateways.server.take_reviews()
    assert asked["review"]["apiVersion"] == "apiextensions.k8s.io/v1beta1"
    assert asked["query"] == "timeout=30s"


# --- lists


def test_a_list_is_converted_in_few_reviews(gateways: Gateways) -> None:
    resource, api = gateways.resource, gateways.api
    objects = [gateways.gateway(f"g{number:04}", namespace="default") for number in range(1000)]
    items = [api.store.build_create(resource.model.model_validate(obj)) for obj in objects]
    assert all(result.ok for result in api.store.write(items))
    page = api.get(gateways.path(), limit="100")
    assert len(page["items"]) == 100
    assert {json.dumps(item["spec"]) for item in page["items"]} == {json.dumps(NEW)}
    assert [len(review["objects"]) for review in gateways.reviews()] == [100]
    listed = api.get(gateways.path())
    assert [item["metadata"]["name"] for item in listed["items"]] == [
        obj["metadata"]["name"] for obj in objects
    ]
    assert sorted(len(review["objects"]) for review in gateways.reviews()) == [400, 500]
    api.get(gateways.path())
    assert gateways.reviews() == []


def test_selectors_see_the_version_of_the_request(gateways: Gateways) -> None:
    gateways.create("a")
    for version, selector in (("v1", "spec.host=shop"), ("v1beta1", "spec.hostPort=shop:80")):
        path = gateways.path(version=version)
        listed = gateways.api.get(path, fieldSelector=selector)
        assert [item["metadata"]["name"] for item in listed["items"]] == ["a"], version


def test_tables_show_the_columns_of_the_version(gateways: Gateways) -> None:
    gateways.create("a")
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    for version, cell in (("v1", "shop"), ("v1beta1", "shop:80")):
        table = gateways.api.client.get(gateways.path(version=version), headers=accept).json()
        assert table["rows"][0]["cells"] == ["a", cell]


# --- watches


class Watching:
    """The events of a watch, which are read in a thread."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.ended = threading.Event()

    def names(self) -> list[str]:
        return [event["object"]["metadata"]["name"] for event in self.events]


@contextmanager
def watching(api: Live, path: str, **params: str) -> Iterator[Watching]:
    """Watches a path while the block runs."""
    seen = Watching()
    with api.as_user("a-token-for-tests") as client:

        def read() -> None:
            try:
                with client.stream("GET", path, params={"watch": "1", **params}) as response:
                    for line in response.iter_lines():
                        seen.events.append(json.loads(line))
                        if seen.events[-1]["type"] == "ERROR":
                            break
            finally:
                seen.ended.set()

        thread = threading.Thread(target=read)
        thread.start()
        yield seen
        thread.join(10)


def test_watchers_get_events_in_their_version(gateways: Gateways) -> None:
    api = gateways.api
    gateways.create("a")
    with (
        watching(api, gateways.path(), timeoutSeconds="2") as one,
        watching(api, gateways.path(), timeoutSeconds="2", fieldSelector="spec.host=shop") as two,
    ):
        until(lambda: one.events and two.events, "the present object")
        gateways.create("b", "v1")
        api.patch(gateways.path("b", "v1beta1"), {"spec": {"hostPort": "other:80"}})
        api.client.delete(gateways.path("b"))
        until(lambda: len(one.events) == 4 and len(two.events) == 3, "the events")
    assert [(event["type"], event["object"]["spec"]) for event in one.events] == [
        ("ADDED", NEW),
        ("ADDED", NEW),
        ("MODIFIED", {"host": "other", "port": 80}),
        ("DELETED", {"host": "other", "port": 80}),
    ]
    assert [event["type"] for event in two.events] == ["ADDED", "ADDED", "DELETED"]


def test_an_event_is_converted_once_for_all_watchers(gateways: Gateways) -> None:
    api = gateways.api
    with (
        watching(api, gateways.path(), timeoutSeconds="2") as one,
        watching(api, gateways.path(), timeoutSeconds="2") as two,
        watching(api, gateways.path(), timeoutSeconds="2") as three,
    ):
        until(lambda: api.app.cacher.cache(gateways.resource).watcher_count == 3, "the watches")
        gateways.create("a")
        until(lambda: one.events and two.events and three.events, "the event")
        assert len(gateways.reviews()) == 1


def test_a_watch_ends_with_an_error_that_says_why(gateways: Gateways) -> None:
    gateways.configure("refuse/no more")
    with watching(gateways.api, gateways.path(), timeoutSeconds="5") as seen:
        gateways.create("a")
        assert seen.ended.wait(5)
    [event] = seen.events
    assert (event["type"], event["object"]["code"]) == ("ERROR", 500)
    shown = f"{gateways.group}/v1beta1, Kind=Gateway"
    assert event["object"]["message"] == f"conversion webhook for {shown} failed: no more"


# --- another storage version


def test_objects_are_read_and_rewritten_after_the_storage_version_changed(
    gateways: Gateways,
) -> None:
    api = gateways.api
    gateways.create("a")
    gateways.create("b")
    gateways.store_in("v1")
    assert gateways.stored("a")["spec"] == OLD
    assert api.get(gateways.path("a"))["spec"] == NEW
    assert api.get(gateways.path("a", "v1beta1"))["spec"] == OLD
    body = api.get(gateways.path("a"))
    same = api.request("PUT", gateways.path("a"), body)  # changes nothing, but is stored
    assert same.json()["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]
    assert gateways.stored("a")["spec"] == NEW
    again = api.request("PUT", gateways.path("a"), same.json())
    assert again.json() == same.json()
    api.patch(gateways.path("b", "v1beta1"), {"metadata": {"labels": {"a": "b"}}})
    assert gateways.stored("b")["spec"] == NEW


def test_what_reads_metadata_only_leaves_the_stored_version(gateways: Gateways) -> None:
    """As garbage collection does, in a process that asks no webhook."""
    gateways.create("a", finalizers=["example.com/hold"])
    gateways.store_in("v1")
    store, resource = gateways.api.store, gateways.resource
    obj = store.get(resource, "default/a")
    assert obj.api_version == f"{gateways.group}/v1beta1"
    item = store.build_update(obj.with_metadata(finalizers=None), obj)
    assert item is not None
    assert store.write([item])[0].ok
    assert gateways.stored("a")["spec"] == OLD
    assert gateways.reviews() == []
    assert gateways.api.get(gateways.path("a"))["spec"] == NEW


@pytest.fixture
def remote(api: Live) -> Iterator[RemoteStore]:
    """Gives the same objects, over REST."""
    store = RemoteStore(RestClient(load(api.kubeconfig), "migrator"), WorkState())
    yield store
    store.close()


class NoRules:
    """Names no write, as where there is neither a policy nor a webhook."""

    def name(self, resource: Resource, subresource: str, operation: str) -> bool:
        return False


def test_a_migration_reads_converted_objects_from_the_api_server(
    gateways: Gateways, remote: RemoteStore
) -> None:
    names = ["a", "b", "c", "d", "e"]
    for name in names:
        gateways.create(name)
    gateways.store_in("v1")
    gateways.api.patch(gateways.path("b"), {"metadata": {"labels": {"a": "b"}}})
    gateways.reviews()
    store = AdmittedStore(gateways.api.store, lambda: remote, NoRules())
    first = store.rewrite_page(gateways.resource, "", 3)
    assert first == Rewriting("default/c", rewritten=2)  # b is in v1 already
    assert store.rewrite_page(gateways.resource, first.after, 3) == Rewriting(
        "default/e", rewritten=2
    )
    assert [len(review["objects"]) for review in gateways.reviews()] == [4]
    assert [gateways.stored(name)["spec"] for name in names] == [NEW] * 5
    assert len(gateways.api.get(gateways.path())["items"]) == 5
    assert gateways.reviews() == []


def test_a_migration_fails_while_the_webhook_does(gateways: Gateways, remote: RemoteStore) -> None:
    gateways.create("a")
    gateways.store_in("v1")
    gateways.configure("refuse/not today")
    store = AdmittedStore(gateways.api.store, lambda: remote, NoRules())
    page = store.rewrite_page(gateways.resource, "", 3)
    assert (page.rewritten, page.failed) == (0, 1)
    assert "failed: not today" in str(page.error)
    alone = AdmittedStore(gateways.api.store, lambda: None, NoRules())
    page = alone.rewrite_page(gateways.resource, "", 3)
    assert "only the API server asks the webhook" in str(page.error)
    assert gateways.stored("a")["spec"] == OLD


# --- admission
