"""Requests that are generated from the OpenAPI document never get a 5xx."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.core.result import Ok

from kcm.api import scheme
from kcm.api.custom.kinds import CustomResource
from kcm.api.scheme import BUILT_IN
from tests.integration.apiserver.serving import Live
from tests.samples import NAMES, manifest

EXAMPLES = 2  # for each operation, on an object that exists; bounds the test's time
PARTS = 4  # of the operations; the suite sends those of the first
_ENDLESS = ("watch", "follow")  # parameters that turn an answer into a stream


@pytest.fixture(scope="module")
def operations(api: Live) -> list[Any]:
    """Returns every operation of the document, after an object of every kind was created."""
    for resource in BUILT_IN.resources():
        if isinstance(resource, CustomResource):  # of another test in this process
            continue
        body = manifest(resource.name)
        path = f"{_root(resource)}/{resource.plural}"
        response = api.request("POST", path, body)
        assert response.status_code in {201, 409}, response.text
    schema = schemathesis.openapi.from_dict(api.get("/openapi/v2"))
    every = (one.ok() for one in schema.get_all_operations() if isinstance(one, Ok))
    return [operation for operation in every if _is_answered_here(operation)]


def _is_answered_here(operation: Any) -> bool:
    """Reports whether this server answers an operation by itself, and the answer ends."""
    action = operation.definition.raw.get("x-kubernetes-action", "")
    return action not in {"connect", "watch", "watchlist"} and not operation.path.endswith("/log")


def _root(resource: scheme.Resource) -> str:
    root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
    return f"{root}/namespaces/default" if resource.namespaced else root


def _names(path: str) -> dict[str, str]:
    """Returns the path parameters that lead to the object of the kind."""
    plural = path.split("{name}", maxsplit=1)[0].rstrip("/").rpartition("/")[2]
    built_in = [r for r in BUILT_IN.resources() if not isinstance(r, CustomResource)]
    known = {resource.plural: resource.name for resource in built_in}
    text = known.get(plural, "")
    name = NAMES.get(text) or (manifest(text)["metadata"]["name"] if text else "none")
    return {"namespace": "default", "name": name}


def _failures(api: Live, operation: Any) -> Iterator[str]:
    failures: list[str] = []

    @seed(1)
    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate],
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def send(case: Any) -> None:
        case.path_parameters = _names(operation.path) | {"path": "x"}
        sent = case.as_transport_kwargs(base_url=api.url)
        query = {k: v for k, v in (case.query or {}).items() if k not in _ENDLESS}
        headers = {"content-type": case.media_type or "application/json"}
        body = sent.get("json", sent.get("data"))
        response = api.client.request(
            sent["method"],
            case.formatted_path,
            params=query,
            **({"content": body} if isinstance(body, bytes) else {"json": body}),
            headers=headers,
        )
        if response.status_code >= 500:
            failures.append(f"{operation.label}: {response.status_code} {response.text[:300]}")
        elif response.status_code >= 400 and response.json().get("kind") != "Status":
            failures.append(f"{operation.label}: no Status: {response.text[:300]}")

    send()
    yield from failures


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, PARTS))]
)
def test_no_request_that_the_document_allows_breaks_the_server(
    api: Live, operations: list[Any], part: int
) -> None:
    chosen = operations[part::PARTS]
    assert len(chosen) > 100
    deletes_last = sorted(chosen, key=lambda operation: operation.method == "delete")
    failures = [line for operation in deletes_last for line in _failures(api, operation)]
    assert failures == []
