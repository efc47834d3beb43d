"""The index entries that the store keeps with each object (DESIGN D1).

An entry names a set of objects: `owner:<uid>` (dependents) and `node:<name>` (pods
bound to a node). The namespace needs
none: a resource's keys are sorted, so a namespace is a range. Events have no
owners: they take no part in garbage collection, as upstream.
"""

from __future__ import annotations

from kcm.api.meta_v1 import KubeObject
from kcm.api.scheme import Resource


def index_entries(resource: Resource, obj: KubeObject) -> list[str]:
    """The entries under which `obj` is to be found."""
    if resource.name == "events":
        return []
    entries = []
    for owner in obj.metadata.owner_references or ():
        entries.append(f"owner:{owner.uid}")
    if resource.name == "pods":
        node = getattr(getattr(obj, "spec", None), "node_name", None)
        if node:
            entries.append(f"node:{node}")
    return entries
