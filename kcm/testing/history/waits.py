"""What an object waits for, and who could change that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kcm.testing.history import pod_waits
from kcm.testing.history.snapshot import Item, Snapshot

# Who removes the finalizers of Kubernetes.
_REMOVERS = {
    "kubernetes": "the namespace controller, once the namespace is empty",
    "foregroundDeletion": "the garbage collector, once its dependents are gone",
    "orphan": "the garbage collector, once its dependents name it no more",
    "kubernetes.io/pvc-protection": "its controller, once no pod uses the claim",
    "kubernetes.io/pv-protection": "its controller, once no claim is bound to the volume",
    "batch.kubernetes.io/job-tracking": "the job controller, once it has counted the pod",
    "service.kubernetes.io/load-balancer-cleanup": "the service controller",
}
_BAD_IF_FALSE = frozenset({"Available", "Ready", "Established", "NamesAccepted", "AbleToScale"})
_BAD_IF_TRUE = frozenset({"ReplicaFailure", "Failed", "Stalled"})


def find_waits(item: Item, world: Snapshot) -> Iterator[str]:
    """Yields what an object waits for, as sentences without an end."""
    if item.is_deleting:
        yield from _waits_of_deletion(item, world)
    yield from _unseen_generation(item)
    yield from _KINDS.get(item.resource, _conditions)(item, world)


def _waits_of_deletion(item: Item, world: Snapshot) -> Iterator[str]:
    metadata = item.metadata
    for finalizer in metadata.get("finalizers") or ():
        holder = _REMOVERS.get(finalizer) or f"whoever set it, {_setter(metadata, finalizer)}"
        yield f"its deletion waits for the finalizer {finalizer} to be removed by {holder}"
    for finalizer in item.spec.get("finalizers") or () if item.kind == "Namespace" else ():
        yield f"its deletion waits for the finalizer {finalizer}: {_REMOVERS.get(finalizer, '?')}"
        yield from _contents(item, world)
    if "foregroundDeletion" in (metadata.get("finalizers") or ()):
        for dependent in world.dependents(item):
            yield f"its deletion waits for its dependent {dependent.title} to be gone"
    if "kubernetes.io/pvc-protection" in (metadata.get("finalizers") or ()):
        for pod in world.of("pods", item.namespace):
            if item.name in pod_waits.claims_of(pod):
                yield f"its deletion waits for Pod {pod.name}, which uses the claim"
    if item.kind == "Pod" and metadata.get("deletionGracePeriodSeconds"):
        node = item.spec.get("nodeName") or "no node"
        yield (
            f"its deletion waits for the kubelet of {node} to stop its containers, at most "
            f"{metadata['deletionGracePeriodSeconds']} s"
        )


def _setter(metadata: Mapping[str, Any], finalizer: str) -> str:
    """Returns the field manager that owns a finalizer."""
    for entry in metadata.get("managedFields") or ():
        fields = ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get("f:finalizers") or {}
        if f'v:"{finalizer}"' in fields:
            return f"the field manager {entry.get('manager')}"
    return "which is not known"


def _contents(namespace: Item, world: Snapshot) -> Iterator[str]:
    for item in world.items:
        if item.namespace == namespace.name and item.metadata.get("finalizers"):
            names = ", ".join(item.metadata["finalizers"])
            yield f"it is not empty: {item.title} has the finalizers {names}"


def _unseen_generation(item: Item) -> Iterator[str]:
    generation, seen = item.metadata.get("generation"), item.status.get("observedGeneration")
    if isinstance(generation, int) and isinstance(seen, int) and seen < generation:
        yield f"no controller has seen its generation {generation} yet, only {seen}"


def _conditions(item: Item, world: Snapshot) -> Iterator[str]:
    for condition in item.conditions:
        name, status = condition.get("type"), condition.get("status")
        if (status == "False" and name in _BAD_IF_FALSE) or (
            status == "True" and name in _BAD_IF_TRUE
        ):
            why = condition.get("message") or condition.get("reason") or "no reason given"
            yield f"{name} is {status}: {why}"


def _workload(item: Item, world: Snapshot) -> Iterator[str]:
    if item.spec.get("paused"):
        yield "it is paused"
    if not item.status:
        yield "no controller has written its status yet"
    yield from _conditions(item, world)


def _claim(claim: Item, world: Snapshot) -> Iterator[str]:
    for why in pod_waits.why_unbound(claim, world):
        yield f"it is not bound: {why}"


def _budget(budget: Item, world: Snapshot) -> Iterator[str]:
    if not budget.status.get("disruptionsAllowed"):
        status = budget.status
        yield (
            f"it allows no eviction: {status.get('currentHealthy') or 0} pods of "
            f"{status.get('expectedPods') or 0} are healthy, {status.get('desiredHealthy') or 0} "
            "must be"
        )


def _service(service: Item, world: Snapshot) -> Iterator[str]:
    selector = service.spec.get("selector")
    if not selector:
        return
    chosen = [
        pod
        for pod in world.of("pods", service.namespace)
        if selector.items() <= (pod.metadata.get("labels") or {}).items()
    ]
    ready = [pod for pod in chosen if pod.condition("Ready").get("status") == "True"]
    if not ready:
        yield f"none of the {len(chosen)} pods that its selector matches is ready"


def _node(node: Item, world: Snapshot) -> Iterator[str]:
    ready = node.condition("Ready")
    if ready.get("status") != "True":
        why = ready.get("message") or ready.get("reason") or "its kubelet has not said so"
        yield f"it is not ready: {why}"


_KINDS: Mapping[str, Callable[[Item, Snapshot], Iterator[str]]] = {
    "pods": pod_waits.find_waits,
    "deployments.apps": _workload,
    "replicasets.apps": _workload,
    "replicationcontrollers": _workload,
    "statefulsets.apps": _workload,
    "daemonsets.apps": _workload,
    "jobs.batch": _workload,
    "persistentvolumeclaims": _claim,
    "poddisruptionbudgets.policy": _budget,
    "services": _service,
    "nodes": _node,
}
