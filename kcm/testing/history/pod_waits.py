"""What a pod waits for: a node, its volumes, its containers, and who keeps it from going."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kcm.testing.history.snapshot import Item, Json, Snapshot, selects

_CLAIMS = "persistentvolumeclaims"
_CLASSES = "storageclasses.storage.k8s.io"
_BUDGETS = "poddisruptionbudgets.policy"


def find_waits(pod: Item, world: Snapshot) -> Iterator[str]:
    """Yields what a pod waits for."""
    if pod.status.get("phase") in {"Succeeded", "Failed"}:
        return
    yield from _volumes(pod, world)
    if not pod.spec.get("nodeName"):
        yield from _scheduling(pod)
        return
    node = world.find("nodes", "", pod.spec["nodeName"])
    if node is None:
        yield f"its node {pod.spec['nodeName']} does not exist"
    elif node.condition("Ready").get("status") != "True":
        yield f"its node {node.name} is not ready"
    if not pod.status.get("phase") or not pod.status.get("containerStatuses"):
        yield f"the kubelet of {pod.spec['nodeName']} has not reported its containers"
    yield from _containers(pod)
    yield from _budgets(pod, world)


def _scheduling(pod: Item) -> Iterator[str]:
    gates = [str(gate.get("name")) for gate in pod.spec.get("schedulingGates") or ()]
    if gates:
        yield f"no scheduler looks at it before its scheduling gates are removed: {gates}"
        return
    scheduled = pod.condition("PodScheduled")
    scheduler = pod.spec.get("schedulerName") or "default-scheduler"
    why = scheduled.get("message") or f"{scheduler} has not looked at it yet"
    yield f"it has no node: {why}"


def claims_of(pod: Item) -> Sequence[str]:
    """Returns the names of the claims that a pod uses."""
    found = []
    for volume in pod.spec.get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            found.append(str(volume["persistentVolumeClaim"].get("claimName")))
        elif volume.get("ephemeral"):
            found.append(f"{pod.name}-{volume.get('name')}")
    return found


def _volumes(pod: Item, world: Snapshot) -> Iterator[str]:
    for name in claims_of(pod):
        claim = world.find(_CLAIMS, pod.namespace, name)
        if claim is None:
            yield f"its PersistentVolumeClaim {name} does not exist"
            continue
        for why in why_unbound(claim, world):
            yield f"its PersistentVolumeClaim {name} is not bound: {why}"


def why_unbound(claim: Item, world: Snapshot) -> Iterator[str]:
    """Yields why a claim is not bound, nothing if it is."""
    if claim.status.get("phase") == "Bound":
        return
    name = claim.spec.get("storageClassName")
    if claim.spec.get("volumeName"):
        yield f"it asks for the volume {claim.spec['volumeName']}"
    elif not name:
        yield "it names no class, and no volume fits"
    elif (storage := world.find(_CLASSES, "", str(name))) is None:
        yield f"the StorageClass {name} does not exist"
    elif storage.obj.get("volumeBindingMode") == "WaitForFirstConsumer":
        yield f"the StorageClass {name} waits for the first pod that uses it to get a node"
    else:
        yield f"{storage.obj.get('provisioner')} has not provided a volume"


def _containers(pod: Item) -> Iterator[str]:
    for status in pod.status.get("initContainerStatuses") or ():
        if "running" in (status.get("state") or {}) and not status.get("started"):
            yield f"its init container {status.get('name')} has not ended"
    for status in pod.status.get("containerStatuses") or ():
        state = status.get("state") or {}
        name, waiting = status.get("name"), state.get("waiting")
        if waiting and waiting.get("reason") != "PodInitializing":
            why = ": ".join(filter(None, (waiting.get("reason"), waiting.get("message"))))
            yield f"its container {name} waits: {why or 'no reason given'}"
            yield from _last_end(status)
        elif "running" in state and not status.get("ready"):
            yield f"its container {name} runs and is not ready"
    for gate in pod.spec.get("readinessGates") or ():
        kind = str(gate.get("conditionType"))
        if pod.condition(kind).get("status") != "True":
            yield f"its readiness gate {kind} is not True"


def _last_end(status: Json) -> Iterator[str]:
    last = (status.get("lastState") or {}).get("terminated")
    if last:
        yield (
            f"its container {status.get('name')} ended with exit code {last.get('exitCode')} "
            f"({last.get('reason')}), after {status.get('restartCount')} restarts"
        )


def _budgets(pod: Item, world: Snapshot) -> Iterator[str]:
    for budget in world.of(_BUDGETS, pod.namespace):
        blocks = not budget.status.get("disruptionsAllowed")
        if blocks and selects(budget.spec.get("selector"), pod.metadata.get("labels")):
            yield f"the PodDisruptionBudget {budget.name} allows no eviction of it"
