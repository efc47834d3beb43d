"""The subresource serviceaccounts/token: issues a token for a service account.

Source: pkg/registry/core/serviceaccount/storage/token.go and
pkg/apis/authentication/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypeVar

from kcm import errors
from kcm.api.core_v1 import Node, Pod, Secret, ServiceAccount
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.auth.service_accounts import TokenOptions
from kcm.apiserver.http.bodies import reading, structs
from kcm.apiserver.http.responses import ApiRequest, Response, json_response
from kcm.apiserver.http_errors import MethodNotAllowed, PathNotFound
from kcm.apiserver.objects import admission
from kcm.helpers.serviceaccount.claims import BoundObjects
from kcm.store import Store

KIND = "TokenRequest.authentication.k8s.io"
MIN_SECONDS = 10 * 60
_MAX_SECONDS = 1 << 32
_DEFAULT_SECONDS = 60 * 60

T = TypeVar("T", bound=KubeObject)


def is_token_request(request: ApiRequest) -> bool:
    """Reports whether a request is for the subresource serviceaccounts/token."""
    info = request.info
    return (info.resource.name, info.subresource) == ("serviceaccounts", "token")


def issue(store: Store, request: ApiRequest, options: TokenOptions | None) -> Response:
    """Handles a POST of a TokenRequest. Its response is the request with a token in its status.

    Raises BadRequest, Conflict, Invalid, MethodNotAllowed, NotFound and StoreUnavailable, and
    PathNotFound from a server that issues no tokens.
    """
    if options is None:
        raise PathNotFound
    if request.method != "POST":
        raise MethodNotAllowed
    asked = reading.read_struct(request, structs.TokenRequest)
    if asked.spec.expiration_seconds is None:
        asked.spec.expiration_seconds = _DEFAULT_SECONDS
    asked = admission.admit_struct(store, request, asked, "authentication.k8s.io/v1")
    spec = asked.spec
    if spec.expiration_seconds is None:  # a webhook has removed it
        spec.expiration_seconds = _DEFAULT_SECONDS
    spec.audiences = spec.audiences or list(options.audiences)
    _check_metadata(asked, request)
    account = store.get(ServiceAccount.resource, request.info.key)
    _check_expiration(spec.expiration_seconds)
    bound = _find_bound(store, account, spec.bound_object_ref)
    warnings = []
    if 0 < options.max_expiration < spec.expiration_seconds:
        warnings.append(
            f"requested expiration of {spec.expiration_seconds} seconds shortened to "
            f"{options.max_expiration} seconds"
        )
        spec.expiration_seconds = options.max_expiration
    now = store.clock.now()
    token = options.issuer.issue(
        account, bound, now, audiences=spec.audiences, seconds=spec.expiration_seconds
    )
    answer = _answer(asked, account, token, now)
    return json_response(answer, 201, warnings)


def _answer(
    asked: structs.TokenRequest, account: ServiceAccount, token: str, now: datetime
) -> dict[str, object]:
    expires = now + timedelta(seconds=asked.spec.expiration_seconds or 0)
    metadata = {
        **asked.metadata.model_dump(mode="json", by_alias=True, exclude_none=True),
        "name": account.name,
        "namespace": account.namespace,
        "uid": account.uid,
        "creationTimestamp": _stamp(now),
    }
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": metadata,
        "spec": asked.spec.model_dump(mode="json", by_alias=True, exclude_none=True),
        "status": {"token": token, "expirationTimestamp": _stamp(expires)},
    }


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _check_metadata(asked: structs.TokenRequest, request: ApiRequest) -> None:
    info, given = request.info, asked.metadata
    for field, value, wanted in (
        ("name", given.name, info.name),
        ("namespace", given.namespace, info.namespace),
    ):
        if value and value != wanted:
            detail = f"must match the service account {field} if specified"
            fault = errors.FieldError("Invalid value", f"metadata.{field}", value, detail)
            raise errors.Invalid([fault], kind=KIND, name=info.name)


def _check_expiration(seconds: int) -> None:
    detail = ""
    if seconds < MIN_SECONDS:
        detail = "may not specify a duration less than 10 minutes"
    elif seconds > _MAX_SECONDS:
        detail = "may not specify a duration larger than 2^32 seconds"
    if detail:
        fault = errors.FieldError("Invalid value", "spec.expirationSeconds", seconds, detail)
        raise errors.Invalid([fault], kind=KIND)


def _find_bound(
    store: Store, account: ServiceAccount, wanted: structs.BoundObjectReference | None
) -> BoundObjects:
    """Returns the object to bind the token to. A pod comes with its node."""
    if wanted is None:
        return BoundObjects()
    name, namespace = wanted.name or "", account.namespace
    kind = wanted.kind if wanted.api_version == "v1" else ""
    bound: BoundObjects
    obj: KubeObject
    if kind == "Pod":
        obj = store.get(Pod.resource, f"{namespace}/{name}")
        if obj.spec.service_account_name != account.name:
            raise errors.BadRequest(
                f'cannot bind token for serviceaccount "{account.name}" to pod running with '
                "different serviceaccount name."
            )
        bound = BoundObjects(pod=obj, node=_find_node(store, obj))
    elif kind == "Node":
        obj = store.get(Node.resource, name)
        bound = BoundObjects(node=obj)
    elif kind == "Secret":
        obj = store.get(Secret.resource, f"{namespace}/{name}")
        bound = BoundObjects(secret=obj)
    else:
        group, _, version = (wanted.api_version or "").rpartition("/")
        shown = f"{group}/{version}, Kind={wanted.kind or ''}"
        raise errors.BadRequest(f"cannot bind token to object of type {shown}")
    if wanted.uid and wanted.uid != obj.uid:
        raise errors.Conflict.of(
            kind,
            name,
            f"the UID in the bound object reference ({wanted.uid}) does not match the UID in "
            "record. The object might have been deleted and then recreated",
        )
    return bound


def _find_node(store: Store, pod: Pod) -> Node | None:
    """Returns the pod's node. If it is gone, its name is all that is known of it."""
    name = pod.spec.node_name
    if not name:
        return None
    try:
        return store.get(Node.resource, name)
    except errors.NotFound:
        return Node().with_metadata(name=name)
