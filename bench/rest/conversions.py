"""Measures what a conversion webhook adds to the creation of a custom object."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.api.client import Connection
from bench.harness import Bench, progress, wait_for
from bench.rest.system import RestSystem, rest_system
from bench.rest.webhooks import start_webhooks
from bench.table import Row, Sample

_GROUP, _PLURAL = "bench.example.com", "gateways"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_CONVERT = "/convert"
_OTHER, _STORED = "v1beta1", "v1"
_MOST = 4.0  # ms that a conversion may add besides its own round trip: handlers are in threads
_SPEC = {"host": "a.example.com", "ports": [80, 443], "routes": {"/": "web", "/api": "api"}}


def rows(bench: Bench) -> Iterator[Row]:
    """Measures creates one after the other, in turns in the stored version and in another one.

    The baseline is a create in the stored version, and a request to the webhook with the same
    review.
    """
    sizes = bench.sizes
    with rest_system(bench) as system:
        rounds = _Rounds(system, sizes.rest_writes)
        progress(f"rest: {rounds.creates} creates in a version that a webhook converts, and in not")
        pairs = [rounds.measure_both() for _ in range(sizes.rest_rounds)]
    baseline = Sample.of([without for without, _ in pairs])
    yield Row(
        name="rest.conversion",
        what="the creation of a custom object, which a webhook converts to the stored version",
        unit="ms",
        measured=Sample.of([with_it for _, with_it in pairs]),
        baseline=baseline,
        baseline_what="ms, of one in that version and a request to the webhook",
        bound=baseline.median + _MOST,
        target=f"{_MOST:g} ms more",
    )


class _Rounds:
    """Creates of custom objects in one system, in two versions."""

    def __init__(self, system: RestSystem, creates: int) -> None:
        self._system = system
        self.creates = creates
        self._server = start_webhooks(system.bench)
        self._webhook = Connection(self._server)
        self._api = Connection(system.servers.api)
        self._define()

    def measure_both(self) -> tuple[float, float]:
        """Returns the milliseconds of a create and a review, and of a create with a conversion."""
        without = self._measure(_STORED) + self._measure_review()
        return without, self._measure(_OTHER)

    def _measure(self, version: str) -> float:
        request = self._request("POST", self._path(version), self._object(version))
        times = [self._api.timed(request) for _ in range(self.creates)]
        self._ask("DELETE", self._path(_STORED))
        self._system.settle()
        return median(times)

    def _measure_review(self) -> float:
        about = {
            "uid": "u" * 36,
            "desiredAPIVersion": f"{_GROUP}/{_STORED}",
            "objects": [json.loads(self._object(_OTHER))],
        }
        review = {
            "kind": "ConversionReview",
            "apiVersion": "apiextensions.k8s.io/v1",
            "request": about,
        }
        request = self._server.request("POST", _CONVERT, json.dumps(review).encode())
        return median(self._webhook.timed(request) for _ in range(self.creates))

    def _define(self) -> None:
        """Defines the kind, and waits until a create in the other version is converted."""
        bundle = base64.b64encode(Path(self._server.certificate).read_bytes()).decode()
        url = f"https://{self._server.host}:{self._server.port}{_CONVERT}"
        webhook = {
            "clientConfig": {"url": url, "caBundle": bundle},
            "conversionReviewVersions": ["v1"],
        }
        kept = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": kept}}}
        spec = {
            "group": _GROUP,
            "scope": "Namespaced",
            "names": {"plural": _PLURAL, "singular": "gateway", "kind": "Gateway"},
            "versions": [
                {"name": name, "served": True, "storage": name == _STORED, "schema": schema}
                for name in (_STORED, _OTHER)
            ],
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        }
        body = {"metadata": {"name": f"{_PLURAL}.{_GROUP}"}, "spec": spec}
        self._ask("POST", _DEFINITIONS, json.dumps(body).encode())
        wait_for(self._is_converted, "the first conversion")

    def _is_converted(self) -> bool:
        create = self._request("POST", self._path(_OTHER), self._object(_OTHER))
        try:
            name = json.loads(self._api.ask(create))["metadata"]["name"]
        except RuntimeError:  # the kind is not served yet
            return False
        stored = json.loads(self._ask("GET", f"{self._path(_STORED)}/{name}"))
        if stored["spec"].get("converted") is not True:
            raise AssertionError("the webhook is not asked")
        return True

    def _path(self, version: str) -> str:
        return f"/apis/{_GROUP}/{version}/namespaces/default/{_PLURAL}"

    def _object(self, version: str) -> bytes:
        metadata = {"generateName": "gateway-", "namespace": "default", "labels": {"app": "a"}}
        kind = {"apiVersion": f"{_GROUP}/{version}", "kind": "Gateway"}
        return json.dumps({**kind, "metadata": metadata, "spec": _SPEC}).encode()

    def _request(self, method: str, path: str, body: bytes = b"") -> bytes:
        return self._system.servers.api.request(method, path, body)

    def _ask(self, method: str, path: str, body: bytes = b"") -> bytes:
        return self._system.client.ask(self._request(method, path, body))
