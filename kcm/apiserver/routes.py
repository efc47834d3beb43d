"""Routes: call the handler for the method of a request and the resource at its path.

Handlers may block, so they run in threads or greenlets.
"""

from __future__ import annotations

from dataclasses import replace

from kcm.api.custom.kinds import CustomResource
from kcm.apiserver.auth.authorizer import Caller
from kcm.apiserver.auth.service_accounts import TokenOptions
from kcm.apiserver.auth.token_review import TokenReviewer
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.computed_kinds import BINDING, COMPONENT_STATUS, is_metric, is_review
from kcm.apiserver.http.responses import ApiRequest, Response, negotiate, with_warnings
from kcm.apiserver.http_errors import MethodNotAllowed, PathNotFound
from kcm.apiserver.objects import (
    component_statuses,
    lists,
    reviews,
    subresources,
    token_requests,
    verbs,
)
from kcm.apiserver.objects.metrics_apis import MetricsApis
from kcm.apiserver.request import Remarks, Request
from kcm.apiserver.request_info import RequestInfo
from kcm.store import Store

_ACTS = ("token", "eviction", "binding")
_STORED = ("", "status")  # the object itself, and the subresource that is a part of it


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
        form=negotiate(
            request.header(b"accept"),
            tables=_has_table(info),
            protobuf=not isinstance(info.resource, CustomResource),
        ),
        agent=request.header(b"user-agent"),
        caller=caller,
        remarks=remarks or Remarks(),
        stale=request.stale,
    )


def _has_table(info: RequestInfo) -> bool:
    """Reports whether what is asked for can be shown as a Table: it is no mere question or act."""
    return not (is_review(info.resource) or info.subresource in _ACTS)


class Routes:
    """Calls the handler of a request on a resource, other than watches, logs and streams."""

    def __init__(
        self,
        store: Store,
        cacher: Cacher,
        metrics_apis: MetricsApis,
        *,
        reviewer: TokenReviewer,
        tokens: TokenOptions | None = None,
    ) -> None:
        """Without `tokens`, the server issues no service account tokens."""
        self._store = store
        self._cacher = cacher
        self._metrics_apis = metrics_apis
        self._reviewer = reviewer
        self._token_options = tokens

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
                return verbs.delete(self._store, api_request, self._cacher)
        raise MethodNotAllowed
