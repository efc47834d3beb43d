"""Measures what a mutating and a validating webhook add to the creation of a pod."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.api.client import Connection, Server
from bench.harness import Bench, progress, wait_for
from bench.objects import pod_of_a_set
from bench.rest.system import PODS, RestSystem, encoded, rest_system
from bench.table import Row, Sample

_GROUP = "/apis/admissionregistration.k8s.io/v1"
_KINDS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
_PATHS = ("/mutate", "/validate")
_MOST = 1.0  # ms that both may add to a create besides their own round trips


def rows(bench: Bench) -> Iterator[Row]:
    """Measures creates one after the other, in turns with and without webhooks.

    The baseline is a create without them, and a request to each with the same review.
    """
    sizes = bench.sizes
    with rest_system(bench) as system:
        rounds = _Rounds(system, sizes.rest_writes)
        progress(f"rest: {rounds.creates} creates with two webhooks, and with none")
        pairs = [rounds.measure_both() for _ in range(sizes.rest_rounds)]
    baseline = Sample.of([without for without, _ in pairs])
    yield Row(
        name="rest.webhooks",
        what="the creation of a pod, which a mutating and a validating webhook are asked about",
        unit="ms",
        measured=Sample.of([with_them for _, with_them in pairs]),
        baseline=baseline,
        baseline_what="ms, of one without webhooks and a request to each",
        bound=baseline.median + _MOST,
        target=f"{_MOST:g} ms more",
    )


class _Rounds:
    """Creates of pods in one system, with and without webhooks."""

    def __init__(self, system: RestSystem, creates: int) -> None:
        self._system = system
        self.creates = creates
        self._server = start_webhooks(system.bench)
        self._webhook = Connection(self._server)
        self._api = Connection(system.servers.api)

    def measure_both(self) -> tuple[float, float]:
        """Returns the milliseconds of a create and two reviews, and of a create with webhooks."""
        without = self._measure() + sum(self._measure_review(path) for path in _PATHS)
        self._configure()
        with_them = self._measure()
        for kind in _KINDS:
            self._ask("DELETE", f"{_GROUP}/{kind}")
            self._ask("GET", f"{_GROUP}/{kind}")
        return without, with_them

    def _measure(self) -> float:
        pod = encoded(pod_of_a_set())
        request = self._system.servers.api.request("POST", PODS, pod)
        times = [self._api.timed(request) for _ in range(self.creates)]
        self._ask("DELETE", PODS)
        self._system.settle()
        return median(times)

    def _measure_review(self, path: str) -> float:
        obj = json.loads(encoded(pod_of_a_set()))
        about = {"uid": "u" * 36, "operation": "CREATE", "object": obj, "oldObject": None}
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": about}
        request = self._server.request("POST", path, json.dumps(review).encode())
        return median(self._webhook.timed(request) for _ in range(self.creates))

    def _configure(self) -> None:
        bundle = base64.b64encode(Path(self._server.certificate).read_bytes()).decode()
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["pods"],
        }
        for kind, path in zip(_KINDS, _PATHS, strict=True):
            url = f"https://{self._server.host}:{self._server.port}{path}"
            webhook = {
                "name": "bench.example.com",
                "clientConfig": {"url": url, "caBundle": bundle},
                "rules": [rule],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
            body = {"metadata": {"name": "bench"}, "webhooks": [webhook]}
            self._ask("POST", f"{_GROUP}/{kind}", json.dumps(body).encode())
            self._ask("GET", f"{_GROUP}/{kind}")
        pod = encoded(pod_of_a_set())
        made = self._api.ask(self._system.servers.api.request("POST", PODS, pod))
        if json.loads(made)["metadata"]["labels"].get("seen") != "yes":
            raise AssertionError("the webhooks are not asked")

    def _ask(self, method: str, path: str, body: bytes = b"") -> bytes:
        return self._system.client.ask(self._system.servers.api.request(method, path, body))


def start_webhooks(bench: Bench) -> Server:
    """Starts the server of webhooks."""
    log = bench.folder / "webhooks.log"
    log.unlink(missing_ok=True)
    bench.spawn("webhooks", ["-m", "bench.programs.webhook_app", str(bench.folder)])
    wait_for(lambda: log.exists() and log.read_text().endswith("\n"), "the webhooks' start")
    host, _, port = log.read_text().split()[0].partition("://")[2].rpartition(":")
    return Server(host, int(port), str(bench.folder / "apiserver.crt"))
