"""The kind Binding, which is created to bind a pod to a node, and never stored.

Source: LegacyBindingREST in pkg/registry/core/pod/storage/storage.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.core_v1.pods import Binding
from kcm.api.scheme import Resource, kind

VERBS = ("create",)
RESOURCE: Resource = kind(Binding, "bindings", has_status=False)


def find(group: str, version: str, plural: str) -> Resource | None:
    """Returns the resource if this is its path, or None."""
    wanted = (RESOURCE.group, RESOURCE.version, RESOURCE.plural)
    return RESOURCE if (group, version, plural) == wanted else None
