"""Routes: from a path and a method to the answer. Everything here may block and runs in a
thread.
"""

from __future__ import annotations

from dataclasses import replace

from kcm.apiserver import health
from kcm.apiserver.auth.authorizer import Caller
from kcm.apiserver.auth.gate import Gate, RequestState
from kcm.apiserver.cache.hub import Hub
from kcm.apiserver.documents import discovery, openapi
from kcm.apiserver.http.accept import negotiate
from kcm.apiserver.http.answers import Answer, ApiCall, json_answer
from kcm.apiserver.metrics import ServerMetrics
from kcm.apiserver.metrics_kinds import is_metric, is_open
from kcm.apiserver.objects import lists, reviews, subresources, verbs
from kcm.apiserver.objects.figures import MetricsAnswers
from kcm.apiserver.refusals import MethodNotAllowed, PathNotFound
from kcm.apiserver.request import Request
from kcm.apiserver.review_kinds import is_review
from kcm.apiserver.target import RequestTarget
from kcm.store import Store
from kcm.store.resource_metrics.answers import StoredMetrics
from kcm.store.resource_metrics.usage import UsageBoard

_PAGES = ("/api", "/apis", "/api/v1", "/version", "/openapi/v2", "/openapi/v3", "/metrics", "/")
_STORED = ("", "status")  # subresources that are plain parts of their objects


def is_page(path: str) -> bool:
    """Reports whether a path is about the server and not about objects."""
    parts = path.strip("/").split("/")
    return (
        (path.rstrip("/") or "/") in _PAGES
        or parts[0] in {"openapi", *health.PATHS}
        or (parts[0] == "apis" and len(parts) <= 3)
        or (parts[0] == "api" and len(parts) <= 2)
    )


def is_watch(case: RequestState) -> bool:
    """Reports whether a request is answered by a watch. It must have been authorized as a
    watch.
    """
    asked, target = case.asked, case.target
    watches = asked is not None and asked.verb == "watch" and target is not None
    if target is None or target.subresource:
        return False
    return watches and not is_review(target.resource) and not is_metric(target.resource)


class Routes:
    """Answers requests other than watches."""

    def __init__(self, store: Store, hub: Hub, metrics: ServerMetrics, gate: Gate) -> None:
        self._tokens = gate.access.tokens
        self._metrics = metrics
        self._store = store
        self._hub = hub
        self._figures = MetricsAnswers(hub, StoredMetrics(UsageBoard(store.io)))
        self._checks = health.health_checks(store, hub, gate.authorizer)

    def page(self, request: Request) -> Answer:
        """Answers discovery, OpenAPI and health. Raises PathNotFound and MethodNotAllowed."""
        if request.method not in {"GET", "HEAD"}:
            raise MethodNotAllowed
        accept = request.header(b"accept")
        parts = request.path.strip("/").split("/")
        match parts:
            case [""]:
                return json_answer({"paths": sorted(_PAGES)})
            case [name, *check] if name in health.PATHS:
                excluded = [v for k, v in request.pairs if k == "exclude"]
                verbose = "verbose" in request.query
                return health.answer(name, self._checks[name], "/".join(check), verbose, excluded)
            case ["metrics"]:
                return self._metrics.page(accept)
            case ["version"]:
                return json_answer(discovery.version())
            case ["api"]:
                return discovery.api(accept, request.header(b"host"))
            case ["apis"]:
                return discovery.apis(accept)
            case ["apis", group]:
                return discovery.group(group)
            case ["api", version]:
                return discovery.group_version("", version)
            case ["apis", group, version] if is_open(group, version):
                return self._figures.resources(group)
            case ["apis", group, version]:
                return discovery.group_version(group, version)
            case ["openapi", *rest]:
                return openapi.answer(rest, accept)
        raise PathNotFound

    def objects(self, request: Request, target: RequestTarget, caller: Caller) -> Answer:
        """Answers a verb on objects. Raises errors of the store and of the request."""
        call = ApiCall(
            method="GET" if request.method == "HEAD" else request.method,
            target=target,
            query=request.query,
            content_type=request.content_type,
            body=request.body,
            form=negotiate(request.header(b"accept")),
            agent=request.header(b"user-agent"),
            caller=caller,
        )
        if is_review(target.resource):
            return reviews.answer(call, self._tokens)
        if is_metric(target.resource):
            return self._figures.answer(call)
        if target.subresource not in _STORED:
            return subresources.handler(call)(self._store, call)
        if target.subresource == "status" and not target.resource.has_status:
            raise PathNotFound
        answer = self._one(call) if target.name else self._many(call)
        custom = target.resource.custom
        if custom is not None and custom.deprecation:
            return replace(answer, warnings=[custom.deprecation, *answer.warnings])
        return answer

    def _many(self, call: ApiCall) -> Answer:
        match call.method:
            case "GET":
                return lists.list_(self._hub, call)
            case "POST" if call.target.namespace or not call.target.resource.namespaced:
                return verbs.create(self._store, call)
            case "DELETE" if call.target.deletable_together:
                return verbs.delete_collection(self._store, self._hub, call)
        raise MethodNotAllowed

    def _one(self, call: ApiCall) -> Answer:
        match call.method:
            case "GET":
                return lists.get(self._store, self._hub, call)
            case "PUT":
                return verbs.update(self._store, call)
            case "PATCH":
                return verbs.patch(self._store, call)
            case "DELETE" if not call.target.subresource:
                return verbs.delete(self._store, call)
        raise MethodNotAllowed
