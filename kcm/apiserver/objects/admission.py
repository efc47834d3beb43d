"""The checks that a write of an object must pass besides the authorization of its request."""

from __future__ import annotations

from collections.abc import Callable

from kcm.api.certificates_v1 import CertificateSigningRequest
from kcm.api.certificates_v1beta1 import ClusterTrustBundle
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.auth import escalation
from kcm.apiserver.auth.attributes import Attributes
from kcm.apiserver.auth.node.restriction import Operation, WantedToken, Write
from kcm.apiserver.http.responses import ApiRequest
from kcm.apiserver.objects import signing_requests


def admit_create(request: ApiRequest, obj: KubeObject) -> KubeObject:
    """Checks an object before it is created, and returns it with its sender if its kind has one.

    A PUT or PATCH that creates an object also needs the permission to create it. Raises Forbidden,
    NotFound and StoreUnavailable.
    """
    info = request.info
    if request.method != "POST":
        resource = info.resource
        request.caller.require(
            Attributes(
                "create", resource.group, resource.version, resource.plural, info.subresource,
                _namespace(request), info.name,
            )
        )  # fmt: skip
    check_node(request, "CREATE", obj)
    if escalation.grants_anything(obj):
        escalation.check(request.caller, info.resource, obj, None)
    if isinstance(obj, CertificateSigningRequest):
        return signing_requests.with_requester(obj, request.caller.user)
    if isinstance(obj, ClusterTrustBundle):
        signing_requests.check_attestation(request.caller, obj, None)
    return obj


def check_change(
    request: ApiRequest, change: Callable[[KubeObject], KubeObject]
) -> Callable[[KubeObject], KubeObject]:
    """Returns a function that applies `change` and checks its result.

    It raises what `admit_create` raises.
    """

    def inner(old: KubeObject) -> KubeObject:
        new = change(old)
        check_node(request, "UPDATE", new, old)
        if escalation.grants_anything(new):
            escalation.check(request.caller, request.info.resource, new, old)
        if isinstance(new, CertificateSigningRequest) and request.info.subresource == "status":
            assert isinstance(old, CertificateSigningRequest)  # an update changes no kind
            signing_requests.check_signing(request.caller, new, old)
        if isinstance(new, ClusterTrustBundle):
            assert isinstance(old, ClusterTrustBundle)  # an update changes no kind
            signing_requests.check_attestation(request.caller, new, old)
        return new

    return inner


def check_node(
    request: ApiRequest,
    operation: Operation,
    new: KubeObject | None = None,
    old: KubeObject | None = None,
    *,
    token: WantedToken | None = None,
) -> None:
    """Raises Forbidden or NotFound if a node sends the request and may not make this write.

    `new` and `old` are the object after and before the write, `token` is what a TokenRequest asks
    for.
    """
    if request.restriction is None:
        return
    info = request.info
    name = info.name or (new.name if new is not None else "")
    namespace = info.namespace or (new.namespace if new is not None else "")
    write = Write(operation, info.resource, namespace, name, info.subresource, new, old, token)
    request.restriction.check(request.caller, write)


def _namespace(request: ApiRequest) -> str:
    """Returns the namespace for authorization, which for a namespace is its own name."""
    info = request.info
    return info.name if info.resource.name == "namespaces" else info.namespace
