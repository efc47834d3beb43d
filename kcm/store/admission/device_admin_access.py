"""Administrators' access to devices: only claims in namespaces that a label marks may ask for it.

Source: AuthorizedForAdmin and AuthorizedForAdminStatus in pkg/registry/resource/utils.go,
Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable

from kcm import errors
from kcm.api.admissionregistration_v1 import CREATE, UPDATE
from kcm.api.core_v1 import Namespace
from kcm.api.resource_v1 import ResourceClaim, ResourceClaimTemplate
from kcm.apimachinery.field_errors import forbidden
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store.admission.plugin import Plugin, Write
from kcm.store.reader import StoreReader

LABEL = "resource.kubernetes.io/admin-access"
_WHY = f"admin access to devices requires the `{LABEL}: true` label on the containing namespace"
_CLAIMS, _TEMPLATES = ResourceClaim.resource.name, ResourceClaimTemplate.resource.name


class DeviceAdminAccess(Plugin):
    """Refuses claims that ask for it, and allocations that grant it, in other namespaces."""

    name = "DeviceAdminAccess"

    def __init__(self, reader: StoreReader) -> None:
        self._reader = reader

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        if operation == CREATE:
            return resource in {_CLAIMS, _TEMPLATES} and not subresource
        return (resource, subresource, operation) == (_CLAIMS, "status", UPDATE)

    def admit(self, write: Write) -> Write:
        """Raises: Invalid, StoreUnavailable."""
        path = _find_grant(write.new) if write.old is not None else _find_request(write.new)
        if not path or (write.old is not None and _find_grant(write.old)):
            return write
        assert write.new is not None  # a creation or an update
        namespace = self._reader.find(Namespace.resource, write.new.namespace or "")
        if namespace is None or namespace.labels.get(LABEL) != "true":
            name = write.new.name or ""
            raise errors.Invalid([forbidden(path, _WHY)], kind=write.new.kind, name=name)
        return write


def _find_request(obj: KubeObject | None) -> str:
    """Returns the path of the first request for this access, "" if there is none."""
    if isinstance(obj, ResourceClaimTemplate):
        spec = obj.spec.spec
    else:
        assert isinstance(obj, ResourceClaim)  # it handles no others
        spec = obj.spec
    asks = (
        one.exactly is not None and one.exactly.admin_access for one in spec.devices.requests or ()
    )
    return _path_of_first(asks, "spec.devices.requests")


def _find_grant(obj: KubeObject | None) -> str:
    """Returns the path of the first allocated device with this access, "" if there is none."""
    assert isinstance(obj, ResourceClaim)  # it handles no others
    allocation = obj.status.allocation
    results = (allocation.devices.results if allocation is not None else None) or ()
    return _path_of_first(
        (one.admin_access for one in results), "status.allocation.devices.results"
    )


def _path_of_first(flags: Iterable[bool | None], path: str) -> str:
    index = next((index for index, flag in enumerate(flags) if flag), None)
    return "" if index is None else f"{path}[{index}].adminAccess"
