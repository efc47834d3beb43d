"""Pages: discovery, OpenAPI, health and metrics, which are at paths of no resource."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

from kcm.apiserver import health
from kcm.apiserver.auth.authorizer import Authorizer
from kcm.apiserver.auth.service_accounts import TokenOptions
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.computed_kinds import is_open
from kcm.apiserver.documents import discovery
from kcm.apiserver.documents.discovery import Discovery
from kcm.apiserver.documents.openapi import OpenApi
from kcm.apiserver.documents.remote import RemoteVersions
from kcm.apiserver.http.responses import Response, json_response
from kcm.apiserver.http_errors import MethodNotAllowed, PathNotFound
from kcm.apiserver.metrics import ServerMetrics, encode_metrics
from kcm.apiserver.objects.metrics_apis import MetricsApis
from kcm.apiserver.request import Request
from kcm.helpers.serviceaccount import discovery as issuer_discovery
from kcm.helpers.serviceaccount.discovery import CONFIGURATION_PATH, JWKS_PATH
from kcm.http import health_metrics
from kcm.store import Store

# --- ETags of documents: a client that has the present one gets 304 without the document.
#
# Source: staging/src/k8s.io/apiserver/pkg/endpoints/discovery/aggregated/etag.go and pkg/handler in
# k8s.io/kube-openapi, Kubernetes 1.33.


class ETags:
    """The ETags of one server's documents."""

    def __init__(self) -> None:
        self._hash = lru_cache(maxsize=16)(_hash)  # a document is one object until it changes

    def add(self, response: Response, if_none_match: str) -> Response:
        """Returns the response with an ETag, as 304 if the client has the document already.

        `if_none_match` is the value of the request's header, "" for none.
        """
        etag = f'"{self._hash(response.body)}"'
        headers = {**response.headers, "etag": etag, "vary": "Accept"}
        present = {word.strip().removeprefix("W/") for word in if_none_match.split(",")}
        if etag in present or "*" in present:
            return replace(response, body=b"", code=304, headers=headers)
        return replace(response, headers=headers)


def _hash(body: bytes) -> str:
    return hashlib.sha512(body).hexdigest().upper()


_DISCOVERY = (CONFIGURATION_PATH, JWKS_PATH)
_PAGES = (
    "/api", "/apis", "/api/v1", "/version", "/openapi/v2", "/openapi/v3", "/metrics",
    health_metrics.PATH, "/",
)  # fmt: skip


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


class Pages:
    """Answers with pages."""

    def __init__(
        self,
        store: Store,
        cacher: Cacher,
        metrics: ServerMetrics,
        authorizer: Authorizer,
        *,
        metrics_apis: MetricsApis,
        tokens: TokenOptions | None,
        remote: Callable[[], RemoteVersions],
    ) -> None:
        """Without `tokens`, the server is no issuer of tokens. `remote` returns what other servers
        serve.
        """
        self._metrics = metrics
        self._metrics_apis = metrics_apis
        self._token_options = tokens
        self._remote = remote
        self._etags = ETags()
        self._discovery, self._openapi = Discovery(store.scheme), OpenApi(store.scheme)
        self.shutting_down = threading.Event()
        self._health_metrics = health_metrics.HealthMetrics()
        self._checks = health.health_checks(store, cacher, authorizer, self.shutting_down)

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
                return health.respond(
                    name,
                    self._checks[name],
                    "/".join(check),
                    self._health_metrics,
                    verbose=verbose,
                    excluded=excluded,
                )
            case ["metrics"]:
                return self._metrics.page(accept)
            case ["metrics", "slis"]:
                return encode_metrics(self._health_metrics.registry, accept)
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
