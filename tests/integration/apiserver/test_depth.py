"""Deeply nested objects over HTTP are rejected with a 4xx, and not stored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.apiserver.serving import Live

REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"


def deep(levels: int) -> bytes:
    body = b'{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"deep"},'
    body += b'"revision":1,"data":'
    return body + b'{"a":' * levels + b"1" + b"}" * levels + b"}"


@pytest.mark.parametrize("levels", [125, 150, 196, 199, 250, 900])
def test_a_field_of_any_depth_is_not_stored_too_deep(api: Live, levels: int) -> None:
    headers = {"content-type": "application/json"}
    answer = api.client.post(REVISIONS, content=deep(levels), headers=headers)
    assert answer.status_code in {400, 422}, answer.text
    assert answer.json()["kind"] == "Status"
    assert api.client.get("/readyz").status_code == 200
    assert api.get(REVISIONS)["items"] == []


@pytest.mark.parametrize("kind", ["merge", "strategic", "json"])
def test_a_patch_does_not_store_it_either(api: Live, kind: str) -> None:
    api.create(REVISIONS, json.loads(deep(1)))
    value: Any = 1
    for _ in range(170):
        value = {"a": value}
    patch: Any = {"data": value}
    if kind == "json":
        patch = [{"op": "add", "path": "/data", "value": value}]
    answer = api.patch(f"{REVISIONS}/deep", patch, kind)
    assert answer.status_code in {400, 422}, answer.text
    assert api.get(f"{REVISIONS}/deep")["data"] == {"a": 1}
    api.client.delete(f"{REVISIONS}/deep", params={"gracePeriodSeconds": 0})


def test_numbers_that_clients_cannot_read_are_not_stored(api: Live) -> None:
    for number in (b"1e400", b"9" * 400):
        content = deep(1).replace(b'"a":1', b'"a":' + number)
        answer = api.client.post(
            REVISIONS, content=content, headers={"content-type": "application/json"}
        )
        assert answer.status_code == 400, answer.text
