"""Routes: call the handler for a request's path and method.

Handlers may block, so they run in threads or greenlets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kcm.api.custom.kinds import CustomResource
from kcm.apiserver import health
from kcm.apiserver.auth.authorizer import Authorizer, Caller
from kcm.apiserver.auth.service_accounts import TokenOptions
from kcm.apiserver.auth.token_review import TokenReviewer
from kcm.apiserver.bodies import protobuf
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.computed_kinds import (
    BINDING,
    COMPONENT_STATUS,
    is_computed,
    is_metric,
    is_open,
    is_review,
)
from kcm.apiserver.documents import discovery
from kcm.apiserver.documents.discovery import Discovery
from kcm.apiserver.documents.openapi import OpenApi
from kcm.apiserver.documents.remote import NO_REMOTE, RemoteVersions
from kcm.apiserver.exchange import Exchange
from kcm.apiserver.http.etags import ETags
from kcm.apiserver.http.responses import (
    ApiRequest,
    Response,
    json_response,
    negotiate,
    with_warnings,
)
from kcm.apiserver.http_errors import MethodNotAllowed, PathNotFound
from kcm.apiserver.metrics import ServerMetrics
from kcm.apiserver.objects import (
    component_statuses,
    lists,
    reviews,
    subresources,
    token_requests,
    verbs,
)
from kcm.apiserver.objects.metrics_apis import MetricsApis
from kcm.apiserver.remarks import Remarks
from kcm.apiserver.request import Request
from kcm.apiserver.request_info import RequestInfo
from kcm.helpers.serviceaccount import discovery as issuer_discovery
from kcm.helpers.serviceaccount.discovery import CONFIGURATION_PATH, JWKS_PATH
from kcm.redisio import greenlets
from kcm.store import Store
from kcm.store.resource_metrics.answers import StoredMetrics
from kcm.store.resource_metrics.usage import UsageBoard

_DISCOVERY = (CONFIGURATION_PATH, JWKS_PATH)
_PAGES = ("/api", "/apis", "/api/v1", "/version", "/openapi/v2", "/openapi/v3", "/metrics", "/")
_SMALL_BODY = 16 * 1024  # bytes
_MOST_TEXT = 1024 * 1024  # bytes of a body of few values outside the event loop: 20 ms
_SMALL_PROTOBUF = 4 * 1024  # bytes; a value has two or more
_STORED = ("", "status")  # the object itself, and the subresource that is a part of it
_SHORT = (*_STORED, "token")  # a token takes one or two reads and a signature


def is_page(path: str) -> bool:
    """Reports whether a path is one of discovery, OpenAPI, health and the like, not of a
    resource.
    """
    parts = path.strip("/").split("/")
    return (
        (path.rstrip("/") or "/") in _PAGES
        or parts[0] in {"openapi", *health.PATHS}
        or path.rstrip("/") in _DISCOVERY
        or (parts[0] == "apis" and len(parts) <= 3)
        or (parts[0] == "api" and len(parts) <= 2)
    )


def is_short(request: Request, info: RequestInfo) -> bool:
    """Reports whether a request takes about a millisecond at most, without the waits for Redis.

    These are reads and writes of one object of a built-in kind with a small body of few values.
    Schemas and rules of definitions and custom kinds may take long, and so may YAML, which can
    expand. What shows only later, as the size of the stored object and what a patch does, raises
    `greenlets.TooLong` where it shows.
    """
    resource = info.resource
    return (
        (bool(info.name) or request.method == "POST")
        and info.subresource in _SHORT
        and not isinstance(resource, CustomResource)
        and resource.group != "apiextensions.k8s.io"
        and not is_computed(resource)
        and "yaml" not in request.content_type
        and is_small(request)
    )


def is_small(request: Request, times: int = 1) -> bool:
    """Reports whether the body of a request takes about a millisecond to handle, or so many `times`
    that, at most.
    """
    body = request.body
    if request.content_type == protobuf.CONTENT_TYPE:
        return len(body) <= _SMALL_PROTOBUF * times
    if len(body) > (_SMALL_BODY if times == 1 else _MOST_TEXT):
        return False
    return body.count(b",") <= greenlets.MOST_VALUES * times


def is_watch(exchange: Exchange) -> bool:
    """Reports whether a request is a watch, and was authorized as one."""
    asked, info = exchange.asked, exchange.info
    if asked is None or asked.verb != "watch" or info is None or info.subresource:
        return False
    return not is_computed(info.resource)


def read_api_request(
    request: Request, info: RequestInfo, caller: Caller, remarks: Remarks | None = None
) -> ApiRequest:
    """Returns a request as its handler gets it. Raises BadRequest and NotAcceptable."""
    return ApiRequest(
        method="GET" if request.method == "HEAD" else request.method,
        info=info,
        query=request.query,
        content_type=request.content_type,
        body=request.body,
        form=negotiate(request.header(b"accept")),
        agent=request.header(b"user-agent"),
        caller=caller,
        remarks=remarks or Remarks(),
        stale=request.stale,
    )


class Routes:
    """Handles requests other than watches, logs and streams."""

    def __init__(
        self,
        store: Store,
        cacher: Cacher,
        metrics: ServerMetrics,
        authorizer: Authorizer,
        *,
        reviewer: TokenReviewer,
        tokens: TokenOptions | None = None,
        remote: Callable[[], RemoteVersions] = lambda: NO_REMOTE,
    ) -> None:
        """Without `tokens`, the server issues no service account tokens. `remote` returns what
        other servers serve.
        """
        self._remote = remote
        self._reviewer = reviewer
        self._token_options = tokens
        self._metrics = metrics
        self._store = store
        self._cacher = cacher
        self._etags = ETags()
        self._discovery, self._openapi = Discovery(store.scheme), OpenApi(store.scheme)
        self._metrics_apis = MetricsApis(cacher, StoredMetrics(UsageBoard(store.io), store.clock))
        self._checks = health.health_checks(store, cacher, authorizer)

    def page(self, request: Request) -> Response:
        """Handles a request for discovery, OpenAPI, health or metrics.

        Raises PathNotFound and MethodNotAllowed.
        """
        if request.method not in {"GET", "HEAD"}:
            raise MethodNotAllowed
        accept = request.header(b"accept")
        parts = request.path.strip("/").split("/")
        match parts:
            case [""]:
                return json_response({"paths": sorted(_PAGES)})
            case [name, *check] if name in health.PATHS:
                excluded = [v for k, v in request.pairs if k == "exclude"]
                verbose = "verbose" in request.query
                return health.respond(name, self._checks[name], "/".join(check), verbose, excluded)
            case ["metrics"]:
                return self._metrics.page(accept)
            case [".well-known", "openid-configuration"] | ["openid", "v1", "jwks"]:
                return self._issuer_document(parts[0])
        response = self._describe_api(parts, accept, request.header(b"host"))
        if parts[0] == "openapi" or discovery.is_aggregated(response):
            return self._etags.add(response, request.header(b"if-none-match"))
        return response

    def _describe_api(self, parts: Sequence[str], accept: str, host: str) -> Response:
        match parts:
            case ["version"]:
                return json_response(discovery.version())
            case ["api"]:
                return self._discovery.api(accept, host)
            case ["apis"]:
                return self._discovery.apis(accept, self._remote())
            case ["apis", group]:
                return self._discovery.group(group, self._remote())
            case ["api", version]:
                return self._discovery.group_version("", version)
            case ["apis", group, version] if is_open(group, version):
                return self._metrics_apis.resources(group)
            case ["apis", group, version]:
                return self._discovery.group_version(group, version)
            case ["openapi", *rest]:
                return self._openapi.respond(rest, accept, self._remote().openapi)
        raise PathNotFound

    def _issuer_document(self, first: str) -> Response:
        options = self._token_options
        if options is None:
            raise PathNotFound
        headers = {"cache-control": issuer_discovery.CACHE_CONTROL}
        if first == "openid":
            response = json_response(issuer_discovery.key_set(options.keys))
            return replace(response, content_type=issuer_discovery.JWKS_TYPE, headers=headers)
        document = issuer_discovery.configuration(
            options.issuers[0], options.jwks_uri, options.keys
        )
        return replace(json_response(document), headers=headers)

    def objects(
        self, request: Request, info: RequestInfo, caller: Caller, remarks: Remarks | None = None
    ) -> Response:
        """Handles a request on a resource. Raises errors of the store and of the request.

        `remarks` gets the annotations of the request's line in the audit log.
        """
        api_request = read_api_request(request, info, caller, remarks)
        return with_warnings(self._respond(api_request), api_request.remarks.warnings)

    def _respond(self, api_request: ApiRequest) -> Response:
        info = api_request.info
        if is_review(info.resource):
            return reviews.respond(self._store, api_request, self._reviewer)
        if is_metric(info.resource):
            return self._metrics_apis.respond(api_request)
        if info.resource is COMPONENT_STATUS:
            return component_statuses.respond(self._store, api_request)
        if info.resource is BINDING:
            return subresources.bind_by_collection(self._store, api_request)
        if token_requests.is_token_request(api_request):
            return token_requests.issue(self._store, api_request, self._token_options)
        if info.subresource not in _STORED:
            return subresources.handler(api_request)(self._store, api_request)
        if info.subresource == "status" and not info.resource.has_status:
            raise PathNotFound
        response = self._one(api_request) if info.name else self._many(api_request)
        if isinstance(info.resource, CustomResource) and (
            deprecation := info.resource.custom.deprecation
        ):
            return replace(response, warnings=[deprecation, *response.warnings])
        return response

    def _many(self, api_request: ApiRequest) -> Response:
        match api_request.method:
            case "GET":
                return lists.list_(self._cacher, api_request)
            case "POST" if api_request.info.namespace or not api_request.info.resource.namespaced:
                return verbs.create(self._store, api_request)
            case "DELETE" if api_request.info.deletable_together:
                return verbs.delete_collection(self._store, self._cacher, api_request)
        raise MethodNotAllowed

    def _one(self, api_request: ApiRequest) -> Response:
        match api_request.method:
            case "GET":
                return lists.get(self._store, self._cacher, api_request)
            case "PUT":
                return verbs.update(self._store, api_request, self._cacher)
            case "PATCH":
                return verbs.patch(self._store, api_request, self._cacher)
            case "DELETE" if not api_request.info.subresource:
                return verbs.delete(self._store, api_request)
        raise MethodNotAllowed
