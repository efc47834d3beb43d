"""The server's metrics under kube-apiserver's names, and the audit line of each write.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/metrics/metrics.go, Kubernetes 1.33.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder

from kcm.apiserver import patches
from kcm.apiserver.answers import Answer
from kcm.apiserver.hub import Hub
from kcm.apiserver.request import Request
from kcm.apiserver.target import Target

log = structlog.get_logger("kcm.apiserver.audit")

_BUCKETS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15)
_LABELS = ("verb", "group", "version", "resource", "subresource", "scope")
_WRITES = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"})


class Metrics:
    """Counts requests."""

    def __init__(self, hub: Hub) -> None:
        self._registry = CollectorRegistry()
        self._total = Counter(
            "apiserver_request",
            "Requests by verb, resource and HTTP code.",
            (*_LABELS, "code"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "apiserver_request_duration_seconds",
            "Seconds from a request's head to its answer, watches excepted.",
            _LABELS,
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._in_flight = Gauge(
            "apiserver_current_inflight_requests",
            "Requests being worked on, by kind.",
            ("request_kind",),
            registry=self._registry,
        )
        self._registry.register(_Watches(hub))

    def page(self, accept: str) -> Answer:
        """/metrics."""
        encode, content_type = choose_encoder(accept)
        return Answer(encode(self._registry), content_type=content_type)

    @contextmanager
    def request(self, request: Request, target: Target | None) -> Iterator[Callable[[int], None]]:
        """One request; call what is yielded with the code of its answer."""
        kind = "readOnly" if request.method in {"GET", "HEAD"} else "mutating"
        started = time.perf_counter()
        gauge = self._in_flight.labels(kind)
        gauge.inc()

        def answered(code: int) -> None:
            self.count(request, target, code, time.perf_counter() - started)

        try:
            yield answered
        finally:
            gauge.dec()

    def count(
        self, request: Request, target: Target | None, code: int, seconds: float | None = None
    ) -> None:
        """A request that was answered; a watch, that has no duration, as it begins."""
        if target is None:
            return
        verb = "WATCH" if seconds is None else _verb(request, target)
        resource = target.resource
        labels = (verb, resource.group, resource.version, resource.plural, target.subresource)
        scope = "resource" if target.name else "namespace" if target.namespace else "cluster"
        self._total.labels(*labels, scope, str(code)).inc()
        if seconds is not None:
            self._seconds.labels(*labels, scope).observe(seconds)
        if verb in _WRITES:
            log.info(
                "write",
                verb=verb,
                path=request.path,
                agent=request.header(b"user-agent")[:100],
                code=code,
                seconds=round(seconds or 0, 4),
            )


def _verb(request: Request, target: Target) -> str:
    match request.method:
        case "GET" | "HEAD":
            return "GET" if target.name else "LIST"
        case "PATCH":
            return "APPLY" if request.content_type == patches.APPLY else "PATCH"
        case "DELETE":
            return "DELETE" if target.name else "DELETECOLLECTION"
        case "POST" | "PUT" as method:
            return method
    return "other"  # what clients make up must not become labels


class _Watches:
    """Reads the numbers of watchers when somebody asks."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(
            "apiserver_longrunning_requests",
            "Watches being served.",
            labels=("verb", "group", "version", "resource"),
        )
        for resource, count in self._hub.watchers.items():
            family.add_metric(["WATCH", resource.group, resource.version, resource.plural], count)
        yield family
