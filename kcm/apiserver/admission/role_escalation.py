"""The plugin RoleEscalation: nobody grants permissions that they lack.

Upstream's registries of roles and bindings do this; the rules are in
`kcm.apiserver.auth.rbac`.
"""

from __future__ import annotations

from kcm.api.admissionregistration_v1 import CREATE, UPDATE
from kcm.api.rbac_v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from kcm.apiserver.admission.request import request_of
from kcm.apiserver.auth import rbac
from kcm.store.admission.plugin import Plugin, Write

_GRANTING = frozenset(
    model.resource.name for model in (Role, ClusterRole, RoleBinding, ClusterRoleBinding)
)


class RoleEscalation(Plugin):
    """Refuses roles and bindings that grant more than their author has."""

    name = "RoleEscalation"

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        return resource in _GRANTING and operation in (CREATE, UPDATE)

    def admit(self, write: Write) -> Write:
        """Raises: Forbidden, NotFound, StoreUnavailable."""
        request = request_of(write)
        if request is not None and write.new is not None:
            rbac.check(request.caller, write.resource, write.new, write.old)
        return write
