"""Namespace lifecycle: nothing may be created in a namespace that is missing or terminating.

The write script checks this in the moment of the write, so no object is created in a namespace that
is deleted at the same time. The system namespaces exist in every cluster; the write pipeline
creates one when a create finds it missing.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle and
pkg/controlplane/controller/systemnamespaces, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.core_v1 import Namespace
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.store.admission.ensuring import BatchCreator, ensure_objects
from kcm.store.namespaces import SYSTEM, NamespaceState, build_creation_error
from kcm.store.reader import StoreReader


def build(*names: str) -> list[Namespace]:
    """Returns the system namespaces, or those given, as they are to be created."""
    return [Namespace(metadata=ObjectMeta(name=name)) for name in names or SYSTEM]


def ensure(store: BatchCreator, *names: str) -> None:
    """Creates the system namespaces, or those given, unless they exist and can be read.

    Raises: StoreUnavailable.
    """
    ensure_objects(store, build(*names))


def check_creatable(reader: StoreReader, resource: Resource, obj: KubeObject) -> None:
    """Raises what a create of `obj` would raise because of its namespace, for dry runs.

    Raises: NotFound, NamespaceTerminating, StoreUnavailable.
    """
    if not resource.namespaced:
        return
    namespace = reader.find(Namespace.resource, obj.namespace or "")
    if namespace is None and obj.namespace not in SYSTEM:
        raise build_creation_error(resource, obj, NamespaceState.MISSING)
    if namespace is not None and namespace.deleting:
        raise build_creation_error(resource, obj, NamespaceState.TERMINATING)
