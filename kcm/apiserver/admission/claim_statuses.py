"""Who may change which part of the status of a ResourceClaim.

Allocations and reservations need a permission of their own, and what drivers report of devices one
for each driver: it may be limited to claims on the node of the driver's service account.

Source: AuthorizedForBinding and AuthorizedForDeviceStatus in pkg/registry/resource/utils.go,
Kubernetes 1.36. Departure: the permission for one of the verbs update and patch is enough for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kcm import errors
from kcm.api.admissionregistration_v1 import UPDATE
from kcm.api.resource_v1 import GROUP, ResourceClaim, ResourceClaimStatus
from kcm.apimachinery.field_errors import forbidden
from kcm.apiserver.admission.request import request_of
from kcm.apiserver.auth.attributes import Attributes, User
from kcm.apiserver.auth.authorizer import Caller
from kcm.apiserver.auth.service_accounts import NODE_NAME
from kcm.errors import FieldError
from kcm.store.admission.plugin import Plugin, Write

_CLAIMS = ResourceClaim.resource
_VERBS = ("update", "patch")
_ASSOCIATED, _ARBITRARY = "associated-node:", "arbitrary-node:"
_ACCOUNTS = "system:serviceaccount:"


class ClaimStatusAuthorization(Plugin):
    """Refuses changes of a claim's status from who may not make them."""

    name = "ClaimStatusAuthorization"

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        return (resource, subresource, operation) == (_CLAIMS.name, "status", UPDATE)

    def admit(self, write: Write) -> Write:
        """Raises: Invalid, StoreUnavailable."""
        request = request_of(write)
        new, old = write.new_as(ResourceClaim), write.old_as(ResourceClaim)
        if request is None:
            return write
        faults = [
            *_check_binding(request.caller, new.status, old.status),
            *_check_devices(request.caller, new, old.status),
        ]
        if faults:
            raise errors.Invalid(faults, kind=new.kind, name=new.name or "")
        return write


def _check_binding(
    caller: Caller, new: ResourceClaimStatus, old: ResourceClaimStatus
) -> Iterator[FieldError]:
    same = new.allocation == old.allocation
    if same and (new.reserved_for or []) == (old.reserved_for or []):
        return
    asked = Attributes("", GROUP, _CLAIMS.version, _CLAIMS.plural, "binding")
    if why := _find_refusal(caller, asked, _VERBS):
        detail = (
            "changing status.allocation or status.reservedFor requires "
            f'resource="resourceclaims/binding", verb="{_VERBS[0]}" permission: {why}'
        )
        yield forbidden("status.allocation", detail)


def _check_devices(
    caller: Caller, new: ResourceClaim, old: ResourceClaimStatus
) -> Iterator[FieldError]:
    if new.status.allocation is None:
        return  # nothing is kept of devices that are not allocated
    node = _node_of(new.status)
    prefixes = [_ARBITRARY]
    if node and _is_on(caller.user, node):
        prefixes = [_ASSOCIATED, _ARBITRARY]
    verbs = [prefix + verb for prefix in prefixes for verb in _VERBS]
    for driver in sorted(_list_changed_drivers(new.status, old)):
        asked = Attributes(
            "", GROUP, _CLAIMS.version, _CLAIMS.plural, "driver", new.namespace, driver
        )
        if why := _find_refusal(caller, asked, verbs):
            detail = (
                'changing status.devices requires resource="resourceclaims/driver", '
                f'verb="[{" ".join(prefix + _VERBS[0] for prefix in prefixes)}]" permission: {why}'
            )
            yield forbidden("status.devices", detail)


def _find_refusal(caller: Caller, asked: Attributes, verbs: Iterable[str]) -> str:
    """Returns why the caller has none of the verbs, "" if they have one."""
    refusals = []
    for verb in verbs:
        try:
            caller.require(replace(asked, verb=verb))
        except errors.Forbidden as error:
            refusals.append(str(error))
        else:
            return ""
    return refusals[0]


def _list_changed_drivers(new: ResourceClaimStatus, old: ResourceClaimStatus) -> set[str]:
    """Returns the drivers of devices whose reports were added, changed or taken away."""
    after, before = (
        {(one.driver, one.pool, one.device, one.share_id): one for one in status.devices or ()}
        for status in (new, old)
    )
    keys = after.keys() | before.keys()
    return {key[0] for key in keys if after.get(key) != before.get(key)}


def _node_of(status: ResourceClaimStatus) -> str:
    """Returns the node to which an allocation is bound by name, "" for others."""
    selector = status.allocation.node_selector if status.allocation is not None else None
    terms = selector.node_selector_terms if selector is not None else []
    if len(terms) != 1 or terms[0].match_expressions or len(terms[0].match_fields or ()) != 1:
        return ""
    field = (terms[0].match_fields or [])[0]
    named = (field.key, field.operator) == ("metadata.name", "In") and len(field.values or ()) == 1
    return (field.values or [""])[0] if named else ""


def _is_on(user: User, node: str) -> bool:
    """Reports whether a user is a service account whose token was made for a pod on the node."""
    return user.name.startswith(_ACCOUNTS) and dict(user.extra).get(NODE_NAME) == (node,)
