"""Namespace lifecycle: nothing new comes into a namespace that is missing or goes.

The write script checks it in the moment of the write, so no object slips into a
namespace that is deleted at the same time, whoever creates it. The namespaces of
every cluster come into being when a create first meets their absence.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle and
pkg/controlplane/controller/systemnamespaces, Kubernetes 1.33.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from kcm import errors
from kcm.api import scheme
from kcm.api.core_v1 import Namespace
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.store.admission.ensuring import ensure as ensure_object

if TYPE_CHECKING:
    from kcm.store.store import Store

SYSTEM = ("default", "kube-system", "kube-public", "kube-node-lease")
_IMMORTAL = frozenset({"default", "kube-system", "kube-public"})


class NamespaceState(StrEnum):
    """Why nothing new may come into a namespace."""

    MISSING = "missing"
    TERMINATING = "terminating"


def ensure(store: Store, *names: str) -> None:
    """Create namespaces of the system, all without names; those that cannot be read anew.

    Raises StoreUnavailable.
    """
    for name in names or SYSTEM:
        ensure_object(store, Namespace(metadata=ObjectMeta(name=name)))


def refusal(resource: Resource, obj: KubeObject, state: NamespaceState) -> errors.ApiError:
    """Returns why `obj` may not be created in a namespace that is in this state."""
    namespace = obj.namespace or ""
    if state is NamespaceState.MISSING:
        return errors.NotFound.of("namespaces", namespace)
    return errors.NamespaceTerminating(
        f'{resource.name} "{obj.name}" is forbidden: unable to create new content in namespace '
        f"{namespace} because it is being terminated",
        resource=resource.name,
        name=obj.name,
    )


def check_creatable(store: Store, resource: Resource, obj: KubeObject) -> None:
    """Raise what a create of `obj` would meet, for those that only try. Raises: NotFound,
    NamespaceTerminating, StoreUnavailable."""
    if not resource.namespaced:
        return
    found = store.get_all([(scheme.resource_of(Namespace), obj.namespace or "")])[0]
    if found is None and obj.namespace not in SYSTEM:
        raise refusal(resource, obj, NamespaceState.MISSING)
    if found is not None and found.deleting:
        raise refusal(resource, obj, NamespaceState.TERMINATING)


def check_deletable(resource: Resource, name: str) -> None:
    """Raise Forbidden for a namespace that must not go."""
    if resource.name == "namespaces" and name in _IMMORTAL:
        raise errors.Forbidden(
            f'namespaces "{name}" is forbidden: this namespace may not be deleted',
            resource="namespaces",
            name=name,
        )
