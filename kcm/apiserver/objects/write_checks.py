"""The checks of a write by admission policies, as functions for the store.

There is no function for a write that no policy is about, so that such writes cost nothing more.
"""

from __future__ import annotations

from functools import partial

from kcm.api.admissionregistration_v1 import CREATE, DELETE, UPDATE
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.http.responses import ApiRequest
from kcm.apiserver.policies.attributes import WriteAttributes
from kcm.redisio import greenlets
from kcm.store import WriteCheck

_UNCHECKED = frozenset({"binding"})  # subresources whose own objects policies would have to see


def check_create(request: ApiRequest) -> WriteCheck | None:
    """Returns the check of a new object, or None if no policy is about it."""
    return _check(request, request.info.resource, request.info.subresource, CREATE)


def check_update(request: ApiRequest) -> WriteCheck | None:
    """Returns the check of a change, or None if no policy is about it."""
    return _check(request, request.info.resource, request.info.subresource, UPDATE)


def check_delete(request: ApiRequest) -> WriteCheck | None:
    """Returns the check of a deletion, or None if no policy is about it."""
    return _check(request, request.info.resource, "", DELETE)


def _check(
    request: ApiRequest, resource: Resource, subresource: str, operation: str
) -> WriteCheck | None:
    admission = request.policies
    if admission is None or subresource in _UNCHECKED:
        return None
    policies = admission.find(resource, subresource, operation)
    if not policies:
        return None

    def check(new: KubeObject | None, old: KubeObject | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        namespace = obj.name if resource.name == "namespaces" else obj.namespace or ""
        write = WriteAttributes(
            operation=operation,
            resource=resource,
            subresource=subresource,
            namespace=namespace,
            name=obj.name,
            new=new,
            old=old,
            user=request.caller.user,
            dry_run=request.dry_run,
        )
        # in a thread: expressions may take up to a second each
        greenlets.block(partial(admission.check, policies, write, request.caller, request.remarks))

    return check
