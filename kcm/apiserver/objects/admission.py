"""What a write must pass beyond its request's own authorization."""

from __future__ import annotations

from collections.abc import Callable

from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.auth import escalation
from kcm.apiserver.auth.attributes import Attributes
from kcm.apiserver.http.answers import Call


def check_create(call: Call, obj: KubeObject) -> None:
    """Before an object is made. Raises: Forbidden, NotFound, StoreUnavailable.

    A PUT or PATCH was authorized as that: where it creates, its user must be allowed to.
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


def checked(
    call: Call, change: Callable[[KubeObject], KubeObject]
) -> Callable[[KubeObject], KubeObject]:
    """`change`, and the checks of what comes out of it. That raises as `check_create` does."""

    def inner(old: KubeObject) -> KubeObject:
        new = change(old)
        if escalation.grants_anything(new):
            escalation.check(call.caller, call.target.resource, new, old)
        return new

    return inner


def _namespace(call: Call) -> str:
    """As the request's path has it: a namespace is inside itself."""
    target = call.target
    return target.name if target.resource.name == "namespaces" else target.namespace
