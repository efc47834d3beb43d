"""Namespace lifecycle: those that always exist, and creates in those that do not.

The check is a guard of the write itself, so no object slips into a namespace
that is deleted at the same moment.
Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle and
pkg/controlplane/controller/systemnamespaces, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm import errors
from kcm.api import scheme
from kcm.api.core_v1 import Namespace
from kcm.api.meta_v1 import KubeObject, ObjectMeta
from kcm.api.scheme import Resource
from kcm.apiserver.refusals import NamespaceTerminating
from kcm.store import Guard, Store

SYSTEM = ("default", "kube-system", "kube-public", "kube-node-lease")
_IMMORTAL = frozenset({"default", "kube-system", "kube-public"})


def ensure(store: Store) -> None:
    """Create the system's namespaces where they are missing. Raises StoreUnavailable."""
    for name in SYSTEM:
        try:
            store.create(Namespace(metadata=ObjectMeta(name=name)))
        except errors.AlreadyExists:
            continue


def guards(obj: KubeObject, resource: Resource) -> tuple[Guard, ...]:
    """What a create depends on."""
    if not resource.namespaced:
        return ()
    return (Guard.exists(_namespaces(), obj.namespace or "default"),)


def refusal(store: Store, obj: KubeObject, resource: Resource) -> errors.ApiError | None:
    """Why nothing may be created beside `obj` now; None when its namespace is there again.

    Raises StoreUnavailable.
    """
    if not resource.namespaced:
        return None
    namespace = obj.namespace or "default"
    try:
        found = store.get(_namespaces(), namespace)
    except errors.NotFound as error:
        return error
    if not found.deleting:
        return None
    return NamespaceTerminating(
        f'{resource.name} "{obj.name}" is forbidden: unable to create new content in namespace '
        f"{namespace} because it is being terminated",
        resource=resource.name,
        name=obj.name,
    )


def check_deletable(resource: Resource, name: str) -> None:
    """Raise Forbidden for a namespace that must not go."""
    if resource is _namespaces() and name in _IMMORTAL:
        raise errors.Forbidden(
            f'namespaces "{name}" is forbidden: this namespace may not be deleted',
            resource="namespaces",
            name=name,
        )


def _namespaces() -> Resource:
    return scheme.resource_of(Namespace)
