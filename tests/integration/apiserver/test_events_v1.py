"""The same Event in both API groups."""

from __future__ import annotations

import json
from typing import Any

from tests.integration.apiserver.serving import Live

NEW = "/apis/events.k8s.io/v1/namespaces/default/events"
CORE = "/api/v1/namespaces/default/events"


def event(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "example.com/tests",
        "reportingInstance": "one",
        "action": "Testing",
        "reason": "Tested",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        "note": "it works",
        "type": "Normal",
    }


def test_what_one_group_creates_the_other_shows(api: Live) -> None:
    created = api.create(NEW, event("both"))
    assert (created["apiVersion"], created["note"]) == ("events.k8s.io/v1", "it works")
    core = api.get(f"{CORE}/both")
    assert (core["apiVersion"], core["message"]) == ("v1", "it works")
    assert core["involvedObject"]["name"] == "p"
    assert core["reportingComponent"] == "example.com/tests"
    assert "note" not in core


def test_updates_patches_and_deletes_go_through_the_newer_group(api: Live) -> None:
    api.create(NEW, event("changed"))
    assert api.patch(f"{NEW}/changed", {"note": "later"}).json()["note"] == "later"
    stored = api.get(f"{NEW}/changed") | {"note": "last"}
    assert api.client.put(f"{NEW}/changed", json=stored).status_code == 200
    assert api.get(f"{CORE}/changed")["message"] == "last"
    assert api.client.delete(f"{NEW}/changed").status_code == 200
    assert api.client.get(f"{CORE}/changed").status_code == 404


def test_lists_watches_tables_and_selectors_are_the_newer_groups_own(api: Live) -> None:
    api.create(NEW, event("listed"))
    stored = api.get(NEW, fieldSelector="regarding.name=p,metadata.name=listed")
    assert (stored["kind"], stored["apiVersion"]) == ("EventList", "events.k8s.io/v1")
    assert [item["note"] for item in stored["items"]] == ["it works"]
    query = {"watch": "1", "fieldSelector": "metadata.name=listed", "timeoutSeconds": "3"}
    with api.client.stream("GET", NEW, params=query) as stream:
        assert json.loads(next(stream.iter_lines()))["object"]["regarding"]["name"] == "p"
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    row = api.client.get(f"{NEW}/listed", headers=accept).json()["rows"][0]
    assert "pod/p" in row["cells"]


def test_discovery_and_openapi_have_the_group(api: Live) -> None:
    (resource,) = api.get("/apis/events.k8s.io/v1")["resources"]
    assert (resource["name"], resource["kind"]) == ("events", "Event")
    schemas = api.get("/openapi/v3/apis/events.k8s.io/v1")["components"]["schemas"]
    assert "note" in schemas["io.k8s.api.events.v1.Event"]["properties"]


def test_unknown_fields_and_the_other_groups_objects_are_refused(api: Live) -> None:
    body = event("odd") | {"message": "core's name"}
    response = api.client.post(NEW, json=body, params={"fieldValidation": "Strict"})
    assert 'unknown field "message"' in response.json()["message"]
    assert api.client.post(CORE, json=event("odd")).status_code == 400
