"""kopf serves admission webhooks, and writes their configurations itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.apiserver.authority import Authority
from tests.integration.apiserver.clients.kopf_process import Operator
from tests.integration.apiserver.serving import Live

SCRIPT = Path(__file__).with_name("kopf_webhooks.py")
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def operator(api: Live, tmp_path: Path) -> Iterator[Operator]:
    Authority(tmp_path, "webhooks").server("127.0.0.1")
    running = Operator(api, tmp_path, SCRIPT, CERTIFICATES=str(tmp_path))
    yield running
    running.kill()


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"team": "green"}}, "data": data}


def wait_for_webhooks(api: Live, operator: Operator) -> None:
    def are_written() -> bool:
        paths = (CONFIGURATIONS.format(kind) for kind in ("mutating", "validating"))
        lists = [api.get(path)["items"] for path in paths]
        return all(items and items[0].get("webhooks") for items in lists)

    operator.until(are_written, "kopf's configurations")


def counted(api: Live, name: str) -> int:
    annotations = api.get(f"{CONFIG_MAPS}/{name}")["metadata"].get("annotations", {})
    return int(annotations.get("example.com/count", "0"))


def test_kopf_serves_webhooks_and_a_timer(api: Live, operator: Operator) -> None:
    wait_for_webhooks(api, operator)
    made = api.create(CONFIG_MAPS, config_map("plain"))
    assert made["data"] == {"owner": "green"}
    warned = api.request("POST", CONFIG_MAPS, config_map("other", owner="blue"))
    assert warned.headers.get_list("warning") == ['299 - "blue is of another team"']
    refused = api.request("POST", CONFIG_MAPS, config_map("bad", owner="nobody"))
    assert refused.status_code == 422
    assert "somebody must own it" in refused.json()["message"]
    operator.until(lambda: counted(api, "plain") >= 2, "the timer")
    operator.kill()
    down = api.request("POST", CONFIG_MAPS, config_map("later"))
    assert down.status_code == 500
    assert "connection refused" in down.json()["message"]
    operator.start()
    operator.until(lambda: created(api, "later"), "kopf's new server")
    seen = counted(api, "plain")
    operator.until(lambda: counted(api, "plain") > seen, "the timer")


def created(api: Live, name: str) -> bool:
    return api.request("POST", CONFIG_MAPS, config_map(name)).status_code == 201
