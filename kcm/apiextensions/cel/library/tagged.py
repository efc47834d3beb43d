"""Values of Kubernetes' types as the library can hold them: maps that name their type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

QUANTITY, SEMVER = "kubernetes.Quantity", "kubernetes.Semver"
URL, IP, CIDR = "kubernetes.URL", "net.IP", "net.CIDR"
NAMED_FORMAT = "kubernetes.NamedFormat"


def tag(kind: str, value: Any) -> dict[str, Any]:
    """Returns a value of a type."""
    return {kind: value}


def is_tagged(value: Any, kind: str) -> bool:
    return isinstance(value, Mapping) and len(value) == 1 and kind in value


def untag(value: Any, *kinds: str) -> Any:
    """Returns what a value of one of these types holds. Raises ValueError for another value."""
    for kind in kinds:
        if is_tagged(value, kind):
            return value[kind]
    raise ValueError("no such overload")
