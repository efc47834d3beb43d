"""Checks that a write must pass besides its request's own authorization."""

from __future__ import annotations

from collections.abc import Callable

from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.auth import escalation
from kcm.apiserver.auth.attributes import Attributes
from kcm.apiserver.http.responses import ApiRequest


def check_create(request: ApiRequest, obj: KubeObject) -> None:
    """Checks an object before it is created. Raises Forbidden, NotFound and StoreUnavailable.

    A PUT or PATCH was authorized as such. Where it creates, its user must be allowed to create.
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
    if escalation.grants_anything(obj):
        escalation.check(request.caller, info.resource, obj, None)


def check_change(
    request: ApiRequest, change: Callable[[KubeObject], KubeObject]
) -> Callable[[KubeObject], KubeObject]:
    """Returns `change` followed by the checks of its result, which raise as `check_create`
    does.
    """

    def inner(old: KubeObject) -> KubeObject:
        new = change(old)
        if escalation.grants_anything(new):
            escalation.check(request.caller, request.info.resource, new, old)
        return new

    return inner


def _namespace(request: ApiRequest) -> str:
    """Returns the namespace in the request's path: a namespace is inside itself."""
    info = request.info
    return info.name if info.resource.name == "namespaces" else info.namespace
