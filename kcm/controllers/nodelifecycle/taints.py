"""Sets the taints that follow from a node's conditions.

Every function that changes a node returns the same object if there is nothing to change, as a
`Patch` requires.

Source: nodeConditionToTaintKeyStatusMap, doNoScheduleTaintingPass, markNodeAsReachable in
pkg/controller/nodelifecycle/node_lifecycle_controller.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kcm.api.core_v1 import Node, NodeCondition, Taint

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
# The names before 1.13.
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

# The stable label, and the deprecated one that must have the same value.
_LABELS = (
    ("kubernetes.io/os", "beta.kubernetes.io/os"),
    ("kubernetes.io/arch", "beta.kubernetes.io/arch"),
)


def ready_condition(node: Node) -> NodeCondition | None:
    """Returns the node's Ready condition, None if it was never reported."""
    for condition in node.status.conditions or ():
        if condition.type == "Ready":
            return condition
    return None


def has_taint(node: Node, key: str) -> bool:
    """Reports whether the node has a NoExecute taint of this key."""
    return any(t.key == key and t.effect == NO_EXECUTE for t in node.spec.taints or ())


def taint_and_opposite(status: str) -> tuple[str, str]:
    """Returns the taint keys for a Ready status: "False" gives those of not-ready and unreachable,
    "Unknown" gives those of unreachable and not-ready.
    """
    return _BY_STATUS[status]


def reconcile_no_schedule(now: datetime, obj: Node) -> Node:
    """Returns the node with the NoSchedule taints that its conditions and spec require.

    It also copies the stable labels to their deprecated names.
    """
    return _with_labels(_with_no_schedule(now, obj))


def add_no_execute(now: datetime, obj: Node) -> Node:
    """Returns the node with the NoExecute taint that its Ready condition requires.

    The taint replaces its opposite, and comes after the NoSchedule taints.
    """
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


def remove_no_execute(obj: Node) -> Node:
    """Returns the node without the NoExecute taints of nodes that are not ready or unreachable.

    Taints with the names from before 1.13 are removed as well.
    """
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
    keys = [_BY_CONDITION.get((c.type, c.status)) for c in node.status.conditions or ()]
    if node.spec.unschedulable:
        keys.append(UNSCHEDULABLE)
    return dict.fromkeys(key for key in keys if key)


def _with_labels(node: Node) -> Node:
    labels = node.labels
    wrong = {new: labels[old] for old, new in _LABELS if old in labels}
    wrong = {key: value for key, value in wrong.items() if labels.get(key) != value}
    return node.with_metadata(labels={**labels, **wrong}) if wrong else node


def _with_taints(node: Node, taints: Sequence[Taint]) -> Node:
    return node.with_spec(node.spec.replace(taints=list(taints) or None))


def _stamp(now: datetime) -> datetime:
    return now.replace(microsecond=0)
