"""The API server's metrics, under kube-apiserver's names. Counted writes are audited, too.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/metrics/metrics.go and
endpoints/filters/metrics.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder

from kcm.apiserver.audit import AuditLog
from kcm.apiserver.auth.service_accounts import (
    AUTO,
    INVALID_AUTO,
    LEGACY,
    MANUAL,
    STALE,
    VALID,
)
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.computed_kinds import is_review
from kcm.apiserver.exchange import Exchange
from kcm.apiserver.http.bodies import patches
from kcm.apiserver.http.limits import InFlight, kind_of
from kcm.apiserver.http.responses import Response
from kcm.apiserver.request import Request
from kcm.apiserver.request_info import RequestInfo

_BUCKETS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15)
_LABELS = (
    "verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component",
)  # fmt: skip
_KNOWN = frozenset({"kubernetes-admin", "kube_proxy", "kubelet", "admin", "client"})
_CONNECTS = frozenset({"exec", "attach", "portforward", "proxy"})
_WRITES = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION", "CONNECT"})


# Source: pkg/serviceaccount/metrics.go, Kubernetes 1.33.
_TOKEN_USES = {
    LEGACY: "Cumulative legacy service account tokens used",
    STALE: "Cumulative stale projected service account tokens used",
    VALID: "Cumulative valid projected service account tokens used",
    AUTO: "Cumulative auto-generated legacy tokens used",
    MANUAL: "Cumulative manually created legacy tokens used",
    INVALID_AUTO: "Cumulative invalid auto-generated legacy tokens used",
}


def encode_metrics(registry: CollectorRegistry, accept: str) -> Response:
    """Returns a page of metrics in a form that the header Accept allows."""
    encode, content_type = choose_encoder(accept)
    return Response(encode(registry), content_type=content_type)


class ServerMetrics:
    """Counts requests, their durations and results, and writes the audit log."""

    def __init__(self, cacher: Cacher, in_flight: InFlight, audit: AuditLog | None = None) -> None:
        self._audit = audit or AuditLog()
        self._registry = CollectorRegistry()
        # Looking a child up by its labels costs more than counting.
        self._children: dict[tuple[str, ...], tuple[Counter, Histogram]] = {}
        self._total = self._counter(
            "apiserver_request", "Requests by verb, resource and HTTP code.", (*_LABELS, "code")
        )
        self._seconds = Histogram(
            "apiserver_request_duration_seconds",
            "Seconds from a request's head to its response, watches excluded.",
            _LABELS,
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._attempts = self._counter(
            "authentication_attempts", "Authentications of requests, by result.", ("result",)
        )
        self._users = self._counter(
            "authenticated_user_requests",
            "Authenticated requests by user; most users are counted as other.",
            ("username",),
        )
        self._decisions = self._counter(
            "authorization_attempts", "Authorizations of requests, by result.", ("result",)
        )
        self._token_uses = {
            name: self._counter(f"serviceaccount_{name}", text, ())
            for name, text in _TOKEN_USES.items()
        }
        self._registry.register(_Watches(cacher))
        self._registry.register(_InFlight(in_flight))

    @property
    def registry(self) -> CollectorRegistry:
        """The registry of /metrics, for metrics of other parts of the server."""
        return self._registry

    def _counter(self, name: str, text: str, labels: tuple[str, ...]) -> Counter:
        return Counter(name, text, labels, registry=self._registry)

    def authentication(self, result: str, user: str = "") -> None:
        """Counts an authentication: `success` with the user's name, or `failure`."""
        self._attempts.labels(result).inc()
        if user:
            self._users.labels(_user_label(user)).inc()

    def token_use(self, name: str) -> None:
        """Counts a use of a service account token, by the name of the metric."""
        self._token_uses[name].inc()

    def authorization(self, result: str) -> None:
        """Counts an authorization: `allowed` or `denied`."""
        self._decisions.labels(result).inc()

    def page(self, accept: str) -> Response:
        """Returns the response of /metrics."""
        return encode_metrics(self._registry, accept)

    def count(self, exchange: Exchange, code: int, seconds: float = 0.0) -> None:
        """Counts a request by the code of its response, and audits it if it is a write.

        One whose resource is not served, or not found out yet, is only audited. A watch is counted
        when it begins, and has no duration.
        """
        request, info = exchange.request, exchange.info
        if info is None:
            if kind_of(request.method) == "mutating":
                self._audit.log_write(exchange, request.method, code, seconds)
            return
        watched = exchange.asked is not None and exchange.asked.verb == "watch"
        verb = "WATCH" if watched else _verb(request, info)
        resource = info.resource
        dry = "All" if b"dryRun=All" in request.query_string else ""
        scope = "resource" if info.name else "namespace" if info.namespace else "cluster"
        labels = (
            verb, dry, resource.group, resource.version, resource.plural, info.subresource,
            scope, "apiserver", str(code),
        )  # fmt: skip
        if watched:
            self._total.labels(*labels).inc()
        else:
            total, duration = self._children.get(labels) or self._find_children(labels)
            total.inc()
            duration.observe(seconds)
        if verb in _WRITES and not is_review(resource):
            self._audit.log_write(exchange, verb, code, seconds)

    def _find_children(self, labels: tuple[str, ...]) -> tuple[Counter, Histogram]:
        """Returns the metrics with these labels, of which the last is the code of the response."""
        children = self._total.labels(*labels), self._seconds.labels(*labels[:-1])
        self._children[labels] = children
        return children


def _user_label(user: str) -> str:
    """Returns the label for a user's name. Names that clients choose must not become labels."""
    if user in _KNOWN:
        return user
    return "email_id" if "@" in user else "other"


def _verb(request: Request, info: RequestInfo) -> str:
    if info.subresource in _CONNECTS:
        return "CONNECT"
    match request.method:
        case "GET" | "HEAD":
            return "GET" if info.name else "LIST"
        case "PATCH":
            return "APPLY" if request.content_type == patches.APPLY else "PATCH"
        case "DELETE":
            return "DELETE" if info.name else "DELETECOLLECTION"
        case "POST" | "PUT" as method:
            return method
    return "other"  # verbs that clients make up must not become labels


class _Watches:
    """Collects the numbers of watchers whenever metrics are requested."""

    def __init__(self, cacher: Cacher) -> None:
        self._cacher = cacher

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(
            "apiserver_longrunning_requests",
            "Watches in progress.",
            labels=("verb", "group", "version", "resource"),
        )
        for resource, count in self._cacher.watcher_counts.items():
            family.add_metric(["WATCH", resource.group, resource.version, resource.plural], count)
        yield family


class _InFlight:
    """Collects the numbers of requests in flight whenever metrics are requested."""

    def __init__(self, in_flight: InFlight) -> None:
        self._in_flight = in_flight

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(
            "apiserver_current_inflight_requests",
            "Requests in flight, by kind.",
            labels=("request_kind",),
        )
        for kind, count in self._in_flight.now.items():
            family.add_metric([kind], count)
        yield family
