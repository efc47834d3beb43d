"""The rules of namespace lifecycle that need no access to the store.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go and
pkg/controlplane/controller/systemnamespaces, Kubernetes 1.33.
"""

from __future__ import annotations

from enum import StrEnum

from kcm import errors
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject

SYSTEM = ("default", "kube-system", "kube-public", "kube-node-lease")
_IMMORTAL = frozenset({"default", "kube-system", "kube-public"})


class NamespaceState(StrEnum):
    """The reason why nothing may be created in a namespace."""

    MISSING = "missing"
    TERMINATING = "terminating"


def build_creation_error(
    resource: Resource, obj: KubeObject, state: NamespaceState
) -> errors.ApiError:
    """Returns the error for creating `obj` in a namespace that is in this state."""
    namespace = obj.namespace or ""
    if state is NamespaceState.MISSING:
        return errors.NotFound.of("namespaces", namespace)
    return errors.NamespaceTerminating(
        f'{resource.name} "{obj.name}" is forbidden: unable to create new content in namespace '
        f"{namespace} because it is being terminated",
        resource=resource.name,
        name=obj.name,
    )


def check_deletable(resource: Resource, name: str) -> None:
    """Raises Forbidden for a namespace that must not be deleted."""
    if resource.name == "namespaces" and name in _IMMORTAL:
        raise errors.Forbidden(
            f'namespaces "{name}" is forbidden: this namespace may not be deleted',
            resource="namespaces",
            name=name,
        )
