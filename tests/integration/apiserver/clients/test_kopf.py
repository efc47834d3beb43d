"""kopf, with the operator of examples/04-operator: handlers, status, finalizer, restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kcm.testing.waiting import until
from tests.integration.apiserver.clients.kopf_process import Operator
from tests.integration.apiserver.serving import Live

EXAMPLE = Path(__file__).parents[4] / "examples" / "04-operator"
GROUP = "/apis/example.com/v1"
HANDLED = "kopf.zalando.org/last-handled-configuration"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def definition(api: Live) -> None:
    api.create(DEFINITIONS, yaml.safe_load((EXAMPLE / "crd.yaml").read_text()))
    until(lambda: api.client.get(f"{GROUP}/greetings").status_code == 200, "the new kind")


@pytest.fixture
def operator(api: Live, definition: None, tmp_path: Path) -> Iterator[Operator]:
    running = Operator(api, tmp_path, EXAMPLE / "operator.py")
    yield running
    running.kill()


def build_greeting(name: str, to: str) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Greeting",
        "metadata": {"name": name},
        "spec": {"to": to},
    }


def read_greeting(api: Live, namespace: str, name: str) -> str:
    response = api.client.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}")
    return str(response.json()["data"]["text"]) if response.status_code == 200 else ""


def test_an_operator_creates_updates_reports_and_says_goodbye(
    api: Live, namespace: str, operator: Operator
) -> None:
    path = f"{GROUP}/namespaces/{namespace}/greetings"
    api.create(path, build_greeting("g", "Ada"))
    operator.until(lambda: read_greeting(api, namespace, "g") == "Hello, Ada!", "the ConfigMap")
    operator.until(lambda: status(api, path).get("said") == "greeted Ada", "the status")
    api.patch(f"{path}/g", {"spec": {"to": "Bob", "word": "Hi"}})
    operator.until(lambda: read_greeting(api, namespace, "g") == "Hi, Bob!", "the change")
    stored = api.get(f"{path}/g")
    assert stored["metadata"]["finalizers"] == ["greetings.example.com/farewell"]
    assert api.request("DELETE", f"{path}/g").status_code == 200
    operator.until(lambda: read_greeting(api, namespace, "g-farewell") == "Goodbye!", "the goodbye")
    operator.until(lambda: api.client.get(f"{path}/g").status_code == 404, "the end")


def status(api: Live, path: str) -> dict[str, Any]:
    greeting_status: dict[str, Any] = api.get(f"{path}/g").get("status", {})
    return greeting_status


def is_handled(api: Live, path: str) -> bool:
    return HANDLED in api.get(path)["metadata"].get("annotations", {})


def test_an_operator_that_was_killed_goes_on_where_it_stopped(
    api: Live, namespace: str, operator: Operator
) -> None:
    path = f"{GROUP}/namespaces/{namespace}/greetings"
    api.create(path, build_greeting("first", "Ada"))
    # What kopf has half handled when it dies it goes on with, and takes for the old state.
    operator.until(lambda: is_handled(api, f"{path}/first"), "the first one's end")
    operator.kill()
    for number in range(5):
        api.create(path, build_greeting(f"g{number}", "Bob"))
    api.patch(f"{path}/first", {"spec": {"to": "Eve"}})
    assert api.request("DELETE", f"{path}/g4").status_code == 200  # never seen: no finalizer yet
    operator.start()
    operator.until(
        lambda: (
            {read_greeting(api, namespace, f"g{number}") for number in range(4)} == {"Hello, Bob!"}
        ),
        "the ConfigMaps of those that came meanwhile",
    )
    operator.until(lambda: read_greeting(api, namespace, "first") == "Hello, Eve!", "the change")
    assert read_greeting(api, namespace, "g4") == ""
