"""The kind ComponentStatus, which is computed for each request and never stored."""

from __future__ import annotations

from kcm.api.core_v1.component_statuses import ComponentStatus
from kcm.api.scheme import Resource, kind

VERBS = ("get", "list")
RESOURCE: Resource = kind(
    ComponentStatus, "componentstatuses", cluster=True, short="cs", has_status=False
)
DEPRECATION = "v1 ComponentStatus is deprecated in v1.19+"


def find(group: str, version: str, plural: str) -> Resource | None:
    """Returns the resource if this is its path, or None."""
    wanted = (RESOURCE.group, RESOURCE.version, RESOURCE.plural)
    return RESOURCE if (group, version, plural) == wanted else None
