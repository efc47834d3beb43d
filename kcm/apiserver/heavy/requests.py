"""`HeavyWrite`: a write of a built-in kind about which all is known that only the server knows."""

from __future__ import annotations

from dataclasses import dataclass

from kcm.api.admissionregistration_v1 import CREATE, UPDATE
from kcm.api.admissionregistration_v1 import GROUP as POLICIES
from kcm.api.custom.kinds import CustomResource
from kcm.apiserver.auth.attributes import NODES, Attributes, User
from kcm.apiserver.auth.authorizer import AuthorizerDecision, Caller
from kcm.apiserver.computed_kinds import is_computed
from kcm.apiserver.request import Request
from kcm.apiserver.request_info import RequestInfo
from kcm.store.admission.chain import AdmissionChain

# What may be written to these depends on permissions of the user that only the server can look up.
_OTHERS = frozenset(
    {
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "certificates.k8s.io",
        "rbac.authorization.k8s.io",
        POLICIES,
    }
)


@dataclass(frozen=True)
class HeavyWrite:
    """A request, its user, and whether the user may create the object."""

    request: Request
    user: User
    creates: AuthorizerDecision


def find_heavy_write(
    request: Request, info: RequestInfo, caller: Caller, admission: AdmissionChain
) -> HeavyWrite | None:
    """Returns the write that a child process can make for a request, None if it cannot.

    It cannot for custom kinds, for nodes, and where policies or webhooks decide. Raises
    StoreUnavailable.
    """
    resource = info.resource
    if (
        not _is_write(request, info)
        or is_computed(resource)
        or isinstance(resource, CustomResource)
        or resource.group in _OTHERS
        or NODES in caller.user.groups
        or request.stale is not None
    ):
        return None
    if any(admission.decides(resource, info.subresource, one) for one in (CREATE, UPDATE)):
        return None
    namespace = info.name if resource.name == "namespaces" else info.namespace
    creates = caller.authorizer.authorize(
        caller.user,
        Attributes(
            "create", resource.group, resource.version, resource.plural, info.subresource,
            namespace, info.name,
        ),
    )  # fmt: skip
    return HeavyWrite(request, caller.user, creates)


def _is_write(request: Request, info: RequestInfo) -> bool:
    """Reports whether a request writes one object or its status."""
    if info.subresource and not (info.subresource == "status" and info.resource.has_status):
        return False
    if not info.name:
        inside = bool(info.namespace) or not info.resource.namespaced
        return request.method == "POST" and inside
    return request.method in {"PUT", "PATCH"}
