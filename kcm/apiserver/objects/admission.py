"""Checks that a write must pass besides its request's own authorization."""

from __future__ import annotations

from collections.abc import Callable

from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.auth import escalation
from kcm.apiserver.auth.attributes import Attributes
from kcm.apiserver.http.answers import ApiCall


def check_create(call: ApiCall, obj: KubeObject) -> None:
    """Checks an object before it is created. Raises Forbidden, NotFound and StoreUnavailable.

    A PUT or PATCH was authorized as such. Where it creates, its user must be allowed to create.
    """
    target = call.target
    if call.method != "POST":
        resource = target.resource
        call.caller.require(
            Attributes(
                "create", resource.group, resource.version, resource.plural, target.subresource,
                _namespace(call), target.name,
            )
        )  # fmt: skip
    if escalation.grants_anything(obj):
        escalation.check(call.caller, target.resource, obj, None)


def check_change(
    call: ApiCall, change: Callable[[KubeObject], KubeObject]
) -> Callable[[KubeObject], KubeObject]:
    """Returns `change` followed by the checks of its result, which raise as `check_create`
    does.
    """

    def inner(old: KubeObject) -> KubeObject:
        new = change(old)
        if escalation.grants_anything(new):
            escalation.check(call.caller, call.target.resource, new, old)
        return new

    return inner


def _namespace(call: ApiCall) -> str:
    """Returns the namespace in the request's path: a namespace is inside itself."""
    target = call.target
    return target.name if target.resource.name == "namespaces" else target.namespace
