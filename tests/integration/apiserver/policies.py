"""A namespace with policies of its own, for tests of admission policies."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.apiserver.serving import Live

GROUP = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"{GROUP}/validatingadmissionpolicies"
BINDINGS = f"{GROUP}/validatingadmissionpolicybindings"
_NUMBERS = itertools.count()
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
CONFIG_MAPS = "/api/v1/namespaces/{}/configmaps"


class Place:
    """A namespace of its own, with policies that hold there only."""

    def __init__(self, api: Live) -> None:
        self.api = api
        self.name = f"policies-{next(_NUMBERS)}"
        labels = {"place": self.name, "tier": "gold"}
        api.create("/api/v1/namespaces", {"metadata": {"name": self.name, "labels": labels}})
        self._policies: list[str] = []

    @property
    def path(self) -> str:
        return CONFIG_MAPS.format(self.name)

    def enforce(
        self,
        expression: str = "object.data.a == 'x'",
        *,
        actions: tuple[str, ...] = ("Deny",),
        rule: dict[str, Any] | None = None,
        binding: dict[str, Any] | None = None,
        constraints: dict[str, Any] | None = None,
        validation: dict[str, Any] | None = None,
        **spec: Any,
    ) -> str:
        """Writes a policy and its binding, waits until they hold, and returns their name."""
        name = f"{self.name}-{next(_NUMBERS)}"
        matching = {"resourceRules": [{**RULE, **(rule or {})}], **(constraints or {})}
        body = {
            "matchConstraints": matching,
            "validations": [{"expression": expression, **(validation or {})}],
            **spec,
        }
        self.api.create(POLICIES, {"metadata": {"name": name}, "spec": body})
        here = {"namespaceSelector": {"matchLabels": {"place": self.name}}}
        bound = {
            "policyName": name,
            "validationActions": list(actions),
            "matchResources": here,
            **(binding or {}),
        }
        self.api.create(BINDINGS, {"metadata": {"name": name}, "spec": bound})
        self._policies.append(name)
        self.wait()
        return name

    def wait(self) -> None:
        """Waits until the server's caches have every write."""
        for path in (POLICIES, BINDINGS, "/api/v1/namespaces", self.path):
            self.api.get(path)

    def create(self, name: str, **data: str) -> httpx.Response:
        return self.api.request("POST", self.path, {"metadata": {"name": name}, "data": data})

    def clear(self) -> None:
        for name in self._policies:
            self.api.request("DELETE", f"{BINDINGS}/{name}")
            self.api.request("DELETE", f"{POLICIES}/{name}")
        self.wait()


@pytest.fixture
def place(api: Live) -> Iterator[Place]:
    made = Place(api)
    yield made
    made.clear()


def message_of(response: httpx.Response) -> str:
    text: str = response.json()["message"]
    return text
