"""A namespace with webhooks of its own, for tests of admission webhooks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.apiserver.serving import Live
from tests.webhooks.process import WebhookServer, webhook_server

GROUP = "/apis/admissionregistration.k8s.io/v1"
MUTATING, VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookServer]:
    folder = tmp_path_factory.mktemp("webhooks")
    with webhook_server(folder, "hook.system.svc") as running:
        yield running


class Place:
    """A namespace of its own, with webhooks that are asked about it only."""

    def __init__(self, api: Live, server: WebhookServer) -> None:
        self.api, self.server = api, server
        self.name = f"hooks-{next(_NUMBERS)}"
        labels = {"place": self.name}
        api.create("/api/v1/namespaces", {"metadata": {"name": self.name, "labels": labels}})
        self._configurations: list[str] = []
        server.take_reviews()

    def path(self, kind: str = "configmaps") -> str:
        return f"/api/v1/namespaces/{self.name}/{kind}"

    def mutate(self, behaviour: str, **fields: Any) -> str:
        return self._configure(MUTATING, behaviour, **fields)

    def validate(self, behaviour: str, **fields: Any) -> str:
        return self._configure(VALIDATING, behaviour, **fields)

    def _configure(
        self, kind: str, behaviour: str, *, rule: dict[str, Any] | None = None, **fields: Any
    ) -> str:
        name = f"{self.name}-{next(_NUMBERS):04}"
        webhook = {
            "name": f"{name}.example.com",
            "clientConfig": self.server.at(behaviour),
            "rules": [{**RULE, **(rule or {})}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 5,
            "namespaceSelector": {"matchLabels": {"place": self.name}},
            **fields,
        }
        path = f"{GROUP}/{kind}"
        self.api.create(path, {"metadata": {"name": name}, "webhooks": [webhook]})
        self._configurations.append(f"{path}/{name}")
        self.wait()
        return f"{name}.example.com"

    def wait(self) -> None:
        """Waits until the server's caches have every write."""
        for path in (f"{GROUP}/{MUTATING}", f"{GROUP}/{VALIDATING}", "/api/v1/namespaces"):
            self.api.get(path)

    def create(self, name: str, **data: str) -> httpx.Response:
        return self.api.request("POST", self.path(), {"metadata": {"name": name}, "data": data})

    def reviews(self) -> list[Any]:
        return [asked["review"]["request"] for asked in self.server.take_reviews()]

    def clear(self) -> None:
        for path in self._configurations:
            self.api.request("DELETE", path)
        self._configurations.clear()
        self.wait()


@pytest.fixture
def place(api: Live, server: WebhookServer) -> Iterator[Place]:
    made = Place(api, server)
    yield made
    made.clear()


def message_of(response: httpx.Response) -> str:
    text: str = response.json()["message"]
    return text
