"""The index entries that the store keeps for each object (design 0019).

An entry names a set of objects: `owner:<uid>` (dependents), `node:<name>` (pods bound to a node),
`noexecute:<taints>` (nodes with exactly these NoExecute taints), `podcidr:<range>` (the node that
has it), `clusterip:<ip>` and `nodeport:<port>` (the Service that has it), `quota:<namespace>` (the
quotas of a namespace). A namespace needs no entry: the keys of a resource are sorted, so a
namespace is a range of them. Events have no owner entries, since they are no dependents in garbage
collection, as upstream.
"""

from __future__ import annotations

from collections.abc import Iterable

from kcm.api.core_v1 import Node, Service, Taint
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store import service_entries


def index_entries(resource: Resource, obj: KubeObject) -> list[str]:
    """Returns the index entries under which `obj` can be looked up."""
    if resource.name == "events":
        return []
    entries = []
    for owner in obj.metadata.owner_references or ():
        entries.append(f"owner:{owner.uid}")
    if isinstance(obj, Service):
        entries += service_entries.entries(obj)
    if resource.name == "resourcequotas":
        entries.append(f"quota:{obj.namespace}")
    if isinstance(obj, Node):
        entries += _node_entries(obj)
    if resource.name == "pods":
        node = getattr(getattr(obj, "spec", None), "node_name", None)
        if node:
            entries.append(f"node:{node}")
    return entries


def _node_entries(node: Node) -> list[str]:
    taints = noexecute_entry(node.spec.taints or ())
    ranges = node.spec.pod_cidrs or ([node.spec.pod_cidr] if node.spec.pod_cidr else [])
    return [*([taints] if taints else ()), *dict.fromkeys(map(pod_cidr_entry, ranges))]


def pod_cidr_entry(text: str) -> str:
    """Returns the index entry of the node that has this range of pod addresses."""
    return f"podcidr:{text}"


def noexecute_entry(taints: Iterable[Taint]) -> str:
    """Returns the index entry of nodes with exactly these NoExecute taints, "" if there are
    none.
    """
    marks = sorted(f"{t.key}={t.value or ''}" for t in taints if t.effect == "NoExecute")
    return f"noexecute:{','.join(marks)}" if marks else ""
