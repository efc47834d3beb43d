"""The state of an object in a few words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kcm.testing.history.snapshot import Item


def describe_state(item: Item) -> str:
    """Returns the state of an object, such as `1 of 2 ready` or `Pending`."""
    describe = _STATES.get(item.resource, _of_any)
    words = describe(item)
    return f"{words}, being deleted" if item.is_deleting else words


def _of_pod(pod: Item) -> str:
    phase = str(pod.status.get("phase") or "no phase")
    containers = pod.status.get("containerStatuses") or []
    ready = sum(bool(one.get("ready")) for one in containers)
    waiting = [str(one["state"]["waiting"].get("reason", "")) for one in containers if _waits(one)]
    words = [f"{phase}, {ready} of {len(pod.spec.get('containers') or [])} containers ready"]
    words += sorted(set(filter(None, waiting)))
    node = pod.spec.get("nodeName")
    words.append(f"on {node}" if node else "on no node")
    return ", ".join(words)


def _waits(container: Mapping[str, object]) -> bool:
    state = container.get("state")
    return isinstance(state, Mapping) and isinstance(state.get("waiting"), Mapping)


def _of_replicas(item: Item) -> str:
    wanted = item.spec.get("replicas", 1)
    return f"{item.status.get('readyReplicas') or 0} of {wanted} ready"


def _of_daemon_set(item: Item) -> str:
    wanted = item.status.get("desiredNumberScheduled", "an unknown number")
    return f"{item.status.get('numberReady') or 0} of {wanted} ready"


def _of_job(job: Item) -> str:
    counts = {name: job.status.get(name) or 0 for name in ("active", "succeeded", "failed")}
    ended = [c.get("type") for c in job.conditions if c.get("status") == "True"]
    words = [f"{count} {name}" for name, count in counts.items()]
    return ", ".join([*map(str, ended), *words])


def _of_node(node: Item) -> str:
    status = node.condition("Ready").get("status")
    words = ["Ready" if status == "True" else f"not ready ({status or 'no condition'})"]
    if node.spec.get("unschedulable"):
        words.append("unschedulable")
    return ", ".join(words)


def _of_budget(budget: Item) -> str:
    status = budget.status
    return (
        f"{status.get('disruptionsAllowed') or 0} disruptions allowed, "
        f"{status.get('currentHealthy') or 0} of {status.get('desiredHealthy') or 0} healthy"
    )


def _of_any(item: Item) -> str:
    if item.status.get("phase"):
        return str(item.status["phase"])
    told = [f"{c.get('type')}={c.get('status')}" for c in item.conditions]
    return ", ".join(told) or "exists"


_STATES: Mapping[str, Callable[[Item], str]] = {
    "pods": _of_pod,
    "replicationcontrollers": _of_replicas,
    "deployments.apps": _of_replicas,
    "replicasets.apps": _of_replicas,
    "statefulsets.apps": _of_replicas,
    "daemonsets.apps": _of_daemon_set,
    "jobs.batch": _of_job,
    "nodes": _of_node,
    "poddisruptionbudgets.policy": _of_budget,
}
