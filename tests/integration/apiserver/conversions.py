"""Gateways, a custom kind that a webhook converts between versions."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from kcm.testing.waiting import until
from tests.integration.apiserver.serving import Live
from tests.webhooks.process import WebhookServer, webhook_server

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NUMBERS = itertools.count()
_TEXT, _NUMBER = {"type": "string"}, {"type": "integer"}
_SPECS: dict[str, dict[str, Any]] = {
    "v1": {"host": _TEXT, "port": _NUMBER, "replicas": _NUMBER},
    "v1beta1": {"hostPort": _TEXT, "replicas": _NUMBER},
    "v1alpha1": {"hostPort": _TEXT, "replicas": _NUMBER},
}
_STATUS = {"type": "object", "properties": {"phase": _TEXT, "replicas": _NUMBER}}
SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookServer]:
    folder = tmp_path_factory.mktemp("conversion")
    with webhook_server(folder, "hook.system.svc") as running:
        yield running


def version(name: str, storage: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"type": "object", "properties": _SPECS[name]}
    if name == "v1":
        spec["x-kubernetes-validations"] = [
            {"rule": "!has(self.port) || self.port > 0", "message": "the port is a number above 0"}
        ]
    field = "host" if name == "v1" else "hostPort"
    schema = {"type": "object", "properties": {"spec": spec, "status": _STATUS}}
    return {
        "name": name,
        "served": True,
        "storage": name == storage,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": SCALE},
        "selectableFields": [{"jsonPath": f".spec.{field}"}],
        "additionalPrinterColumns": [
            {"name": "Address", "type": "string", "jsonPath": f".spec.{field}"}
        ],
    }


class Gateways:
    """Gateways in a group of their own."""

    def __init__(self, api: Live, server: WebhookServer, storage: str = "v1beta1") -> None:
        self.api, self.server = api, server
        self.group = f"g{next(_NUMBERS)}.example.com"
        self.crd = f"{DEFINITIONS}/gateways.{self.group}"
        api.create(DEFINITIONS, self.definition(storage))
        until(lambda: api.client.get(self.path()).status_code == 200, "the kind")
        server.take_reviews()

    def definition(self, storage: str) -> dict[str, Any]:
        webhook = {"clientConfig": self.server.at("convert"), "conversionReviewVersions": ["v1"]}
        return {
            "metadata": {"name": f"gateways.{self.group}"},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {"plural": "gateways", "kind": "Gateway"},
                "versions": [version(name, storage) for name in _SPECS],
                "conversion": {"strategy": "Webhook", "webhook": webhook},
            },
        }

    def path(self, name: str = "", version: str = "v1", namespace: str = "default") -> str:
        base = f"/apis/{self.group}/{version}/namespaces/{namespace}/gateways"
        return f"{base}/{name}" if name else base

    def gateway(self, name: str, version: str = "v1beta1", **metadata: Any) -> dict[str, Any]:
        """Returns a Gateway at shop:80."""
        spec = {"host": "shop", "port": 80} if version == "v1" else {"hostPort": "shop:80"}
        kind = {"apiVersion": f"{self.group}/{version}", "kind": "Gateway"}
        return {**kind, "metadata": {"name": name, **metadata}, "spec": spec}

    def create(self, name: str, version: str = "v1beta1", **metadata: Any) -> Any:
        return self.api.create(self.path(version=version), self.gateway(name, version, **metadata))

    def configure(self, behaviour: str, **changes: Any) -> None:
        """Has the webhook behave in this way from now on, and changes its configuration."""
        webhook = {"clientConfig": self.server.at(behaviour), **changes}
        patch = {"spec": {"conversion": {"webhook": webhook}}}
        assert self.api.patch(self.crd, patch).status_code == 200
        self.settle()

    def store_in(self, version: str) -> None:
        """Makes a version the storage version."""
        definition = self.api.get(self.crd)
        for one in definition["spec"]["versions"]:
            one["storage"] = one["name"] == version
        assert self.api.request("PUT", self.crd, definition).status_code == 200
        until(lambda: self.resource.version == version, "the storage version")
        self.settle()

    def settle(self) -> None:
        """Waits until the server knows the definition."""
        self.api.get(DEFINITIONS)
        self.server.take_reviews()

    @property
    def resource(self) -> Any:
        """The storage version."""
        return self.api.store.scheme.by_name(f"gateways.{self.group}")

    def stored(self, name: str) -> Any:
        """Returns a Gateway as it is stored."""
        return json.loads(self.api.store.get_raw(self.resource, f"default/{name}"))

    def reviews(self) -> list[Any]:
        """Returns the requests of the reviews since the last call."""
        return [asked["review"]["request"] for asked in self.server.take_reviews()]


@pytest.fixture
def gateways(api: Live, server: WebhookServer) -> Gateways:
    """Returns Gateways that are stored in v1beta1."""
    return Gateways(api, server)


def message_of(response: httpx.Response) -> str:
    text: str = response.json()["message"]
    return text
