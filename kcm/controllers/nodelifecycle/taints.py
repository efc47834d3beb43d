"""The taints that a node's conditions ask for, put on and taken off.

All functions here take a node and return it changed, or as it is (the same object)
when there is nothing to do, so they suit a `Patch`.

Source: nodeConditionToTaintKeyStatusMap, doNoScheduleTaintingPass, markNodeAsReachable
in pkg/controller/nodelifecycle/node_lifecycle_controller.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kcm.api.core_v1 import Node, NodeCondition, Taint
from kcm.apimachinery.meta_v1 import KubeObject

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
# What they were called before 1.13.
OLD_KEYS = frozenset({"node.alpha.kubernetes.io/notReady", "node.alpha.kubernetes.io/unreachable"})

NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"

_BY_CONDITION = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
_OURS = frozenset({*_BY_CONDITION.values(), UNSCHEDULABLE})
_BY_STATUS = {"False": (NOT_READY, UNREACHABLE), "Unknown": (UNREACHABLE, NOT_READY)}

# The stable label, and the one from before it that must say the same.
_LABELS = (
    ("kubernetes.io/os", "beta.kubernetes.io/os"),
    ("kubernetes.io/arch", "beta.kubernetes.io/arch"),
)


def ready_condition(node: Node) -> NodeCondition | None:
    """The node's Ready condition, if it was ever reported."""
    for condition in node.status.conditions or ():
        if condition.type == "Ready":
            return condition
    return None


def has_taint(node: Node, key: str) -> bool:
    """Whether the node carries a NoExecute taint of this key."""
    return any(t.key == key and t.effect == NO_EXECUTE for t in node.spec.taints or ())


def wanted_and_opposite(status: str) -> tuple[str, str]:
    """The key that a Ready status of False or Unknown asks for, and the one it rules out."""
    return _BY_STATUS[status]


def tidy(now: datetime, obj: KubeObject) -> KubeObject:
    """The NoSchedule taints that conditions and spec ask for, and the labels' older twins."""
    assert isinstance(obj, Node)
    return _with_labels(_with_no_schedule(now, obj))


def tainted(now: datetime, obj: KubeObject) -> KubeObject:
    """The NoExecute taint that the Ready condition asks for, in the place of its opposite;
    behind the NoSchedule taints, for those come first."""
    assert isinstance(obj, Node)
    ready = ready_condition(obj)
    if ready is None or ready.status not in _BY_STATUS:
        return obj
    wanted, opposite = _BY_STATUS[ready.status]
    if has_taint(obj, wanted) and not has_taint(obj, opposite):
        return obj
    node = _with_no_schedule(now, obj)
    taints = [t for t in node.spec.taints or () if not _is(t, opposite)]
    if not any(_is(t, wanted) for t in taints):
        taints.append(Taint(key=wanted, effect=NO_EXECUTE, time_added=_stamp(now)))
    return _with_taints(node, taints)


def reachable(obj: KubeObject) -> KubeObject:
    """Without NoExecute taints for being not ready or unreachable, the old names included."""
    assert isinstance(obj, Node)
    taints = obj.spec.taints or []
    kept = [t for t in taints if not (_is(t, NOT_READY, UNREACHABLE) or t.key in OLD_KEYS)]
    return obj if len(kept) == len(taints) else _with_taints(obj, kept)


def _is(taint: Taint, *keys: str) -> bool:
    return taint.effect == NO_EXECUTE and taint.key in keys


def _with_no_schedule(now: datetime, node: Node) -> Node:
    wanted = _no_schedule_keys(node)
    taints = node.spec.taints or []
    ours = [t for t in taints if t.effect == NO_SCHEDULE and t.key in _OURS]
    if {t.key for t in ours} == wanted.keys():
        return node
    kept = [t for t in taints if not (t in ours and t.key not in wanted)]
    present = {t.key for t in ours}
    new = [
        Taint(key=key, effect=NO_SCHEDULE, time_added=_stamp(now))
        for key in wanted
        if key not in present
    ]
    return _with_taints(node, [*kept, *new])


def _no_schedule_keys(node: Node) -> dict[str, None]:
    found = [_BY_CONDITION.get((c.type, c.status)) for c in node.status.conditions or ()]
    if node.spec.unschedulable:
        found.append(UNSCHEDULABLE)
    return dict.fromkeys(key for key in found if key)


def _with_labels(node: Node) -> Node:
    labels = node.labels
    wrong = {new: labels[old] for old, new in _LABELS if old in labels}
    wrong = {key: value for key, value in wrong.items() if labels.get(key) != value}
    return node.with_metadata(labels={**labels, **wrong}) if wrong else node


def _with_taints(node: Node, taints: Sequence[Taint]) -> Node:
    return node.with_spec(node.spec.replace(taints=list(taints) or None))


def _stamp(now: datetime) -> datetime:
    return now.replace(microsecond=0)
