"""Who made a write: what its store reported, joined with what the object itself tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kcm.store.writes.observing import Author

_NODES = "kcm-nodes-"  # the client of the simulated nodes
_LEASES = "leases.coordination.k8s.io"


def complete(author: Author | None, resource: str, obj: Mapping[str, Any]) -> Author:
    """Returns the author of a write that made `obj`.

    An Event is its source's, and what the simulated nodes write is its node's kubelet's. If no
    store reported the write, the field manager of the last change is taken.
    """
    if author is None:
        return Author("component", last_manager(obj) or "unknown")
    if author.kind != "component":
        return author
    if obj.get("kind") == "Event":
        return Author("component", _source_of(obj) or author.name)
    if author.name.startswith(_NODES):
        node = _node_of(resource, obj)
        return Author("component", f"kubelet of {node}" if node else "simulated nodes")
    return Author("component", author.name.removeprefix("kcm/"))


def _source_of(event: Mapping[str, Any]) -> str:
    source = event.get("source") or {}
    name = str(event.get("reportingComponent") or source.get("component") or "")
    return f"{name} of {source['host']}" if name == "kubelet" and source.get("host") else name


def _node_of(resource: str, obj: Mapping[str, Any]) -> str:
    metadata = obj.get("metadata") or {}
    if resource == "pods":
        return str((obj.get("spec") or {}).get("nodeName") or "")
    return str(metadata.get("name", "")) if resource in {"nodes", _LEASES} else ""


def changed_manager(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Returns the field manager whose entry a write changed last, "" if it changed none."""
    before = _managed(old)
    return _last([entry for entry in _managed(new) if entry not in before])


def last_manager(obj: Mapping[str, Any]) -> str:
    """Returns the field manager that changed an object last, "" if it has none."""
    return _last(_managed(obj))


def _managed(obj: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return (obj.get("metadata") or {}).get("managedFields") or []


def _last(entries: Sequence[Mapping[str, Any]]) -> str:
    if not entries:
        return ""
    return str(max(entries, key=lambda entry: entry.get("time") or "").get("manager", ""))
