"""What objects wait for."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.testing.history.snapshot import Item, Snapshot
from kcm.testing.history.waits import find_waits

Json = dict[str, Any]


def item(resource: str, name: str, **parts: Any) -> Item:
    """Returns an object with some parts; `meta` goes into its metadata."""
    kind = resource.partition(".")[0].removesuffix("s").capitalize()
    cluster = resource in {"nodes", "namespaces", "storageclasses.storage.k8s.io"}
    meta = {"name": name, "uid": f"{resource}/{name}", **parts.pop("meta", {})}
    return Item(
        resource,
        {"kind": kind, "metadata": meta if cluster else {"namespace": "n", **meta}, **parts},
    )


def pod(name: str = "p", **parts: Any) -> Item:
    spec = {"nodeName": "node-1", "containers": [{"name": "m"}], **parts.pop("spec", {})}
    state = {"name": "m", "ready": True, "state": {"running": {}}, **parts.pop("state", {})}
    status = {"phase": "Running", "containerStatuses": [state], **parts.pop("status", {})}
    return item("pods", name, spec=spec, status=status, **parts)


def is_true(kind: str, status: str = "True", message: str = "") -> Json:
    return {"type": kind, "status": status, "message": message}


NODE = item("nodes", "node-1", status={"conditions": [is_true("Ready")]})
LOST = item("nodes", "node-1", status={"conditions": [is_true("Ready", "Unknown", "silent")]})
UNSCHEDULABLE = is_true("PodScheduled", "False", "no")
CLAIMED = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
DELETING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def claim(**spec: Any) -> Item:
    return item("persistentvolumeclaims", "c", spec=spec, status={"phase": "Pending"})


def storage(mode: str) -> Item:
    own = {"provisioner": "csi.example.com", "volumeBindingMode": mode}
    return item("storageclasses.storage.k8s.io", "fast", **own)


def budget(allowed: int) -> Item:
    spec = {"selector": {"matchLabels": {"app": "web"}}}
    status = {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 2}
    return item("poddisruptionbudgets.policy", "b", spec=spec, status=status)


def web_pod(**parts: Any) -> Item:
    return pod(meta={"labels": {"app": "web"}}, **parts)


@pytest.mark.parametrize(
    ("about", "others", "waits"),
    [
        pytest.param(pod(), [NODE], [], id="a pod that runs waits for nothing"),
        pytest.param(pod(status={"phase": "Succeeded"}), [], [], id="nor does one that has ended"),
        pytest.param(
            pod(spec={"nodeName": None}, status={"conditions": [UNSCHEDULABLE]}),
            [],
            ["it has no node: no"],
            id="a pod without a node",
        ),
        pytest.param(
            pod(spec={"nodeName": None, "schedulerName": "mine"}),
            [],
            ["it has no node: mine has not looked at it yet"],
            id="a pod of a scheduler that is not there",
        ),
        pytest.param(
            pod(spec={"nodeName": None, "schedulingGates": [{"name": "g"}]}),
            [],
            ["no scheduler looks at it before its scheduling gates are removed: ['g']"],
            id="a gated pod",
        ),
        pytest.param(pod(), [LOST], ["its node node-1 is not ready"], id="a pod of a lost node"),
        pytest.param(pod(), [], ["its node node-1 does not exist"], id="a pod of no node"),
        pytest.param(
            pod(spec=CLAIMED), [NODE], ["its PersistentVolumeClaim c does not exist"], id="no claim"
        ),
        pytest.param(
            pod(spec=CLAIMED),
            [NODE, claim(storageClassName="fast")],
            ["its PersistentVolumeClaim c is not bound: the StorageClass fast does not exist"],
            id="a claim of no class",
        ),
        pytest.param(
            claim(storageClassName="fast"),
            [storage("WaitForFirstConsumer")],
            ["it is not bound: the StorageClass fast waits for the first pod that uses it to get "
             "a node"],
            id="a claim that waits for a pod",
        ),
        pytest.param(
            claim(storageClassName="fast"),
            [storage("Immediate")],
            ["it is not bound: csi.example.com has not provided a volume"],
            id="a claim that waits for its driver",
        ),
        pytest.param(
            claim(volumeName="v"), [], ["it is not bound: it asks for the volume v"], id="a volume"
        ),
        pytest.param(
            claim(), [], ["it is not bound: it names no class, and no volume fits"], id="no class"
        ),
        pytest.param(
            pod(state={"ready": False, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                       "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
                       "restartCount": 3}),
            [NODE],
            ["its container m waits: CrashLoopBackOff",
             "its container m ended with exit code 1 (Error), after 3 restarts"],
            id="a container that crashes",
        ),
        pytest.param(
            pod(state={"ready": False}, spec={"readinessGates": [{"conditionType": "x/y"}]}),
            [NODE],
            ["its container m runs and is not ready", "its readiness gate x/y is not True"],
            id="a container that is not ready, and a gate",
        ),
        pytest.param(
            web_pod(), [NODE, budget(0)],
            ["the PodDisruptionBudget b allows no eviction of it"], id="a budget that blocks",
        ),
        pytest.param(web_pod(), [NODE, budget(1)], [], id="a budget that does not block"),
        pytest.param(
            budget(0), [],
            ["it allows no eviction: 1 pods of 0 are healthy, 2 must be"], id="the budget itself",
        ),
        pytest.param(
            item("configmaps", "a", meta={**DELETING, "finalizers": ["example.com/x"],
                 "managedFields": [{"manager": "operator", "fieldsV1": {
                     "f:metadata": {"f:finalizers": {'v:"example.com/x"': {}}}}}]}),
            [],
            ["its deletion waits for the finalizer example.com/x to be removed by whoever set it, "
             "the field manager operator"],
            id="a finalizer and who set it",
        ),
        pytest.param(
            item("configmaps", "a", meta={**DELETING, "finalizers": ["foregroundDeletion"]}),
            [item("configmaps", "b", meta={"ownerReferences": [{"uid": "configmaps/a"}]})],
            ["its deletion waits for the finalizer foregroundDeletion to be removed by the garbage "
             "collector, once its dependents are gone",
             "its deletion waits for its dependent Configmap b to be gone"],
            id="a foreground deletion",
        ),
        pytest.param(
            item("persistentvolumeclaims", "c", status={"phase": "Bound"},
                 meta={**DELETING, "finalizers": ["kubernetes.io/pvc-protection"]}),
            [pod(spec=CLAIMED), pod("other")],
            ["its deletion waits for the finalizer kubernetes.io/pvc-protection to be removed by "
             "its controller, once no pod uses the claim",
             "its deletion waits for Pod p, which uses the claim"],
            id="a claim in use",
        ),
        pytest.param(
            pod(meta={**DELETING, "deletionGracePeriodSeconds": 30}), [NODE],
            ["its deletion waits for the kubelet of node-1 to stop its containers, at most 30 s"],
            id="a pod that ends",
        ),
        pytest.param(
            item("namespaces", "n", meta=DELETING, spec={"finalizers": ["kubernetes"]}),
            [item("configmaps", "a", meta={"finalizers": ["x/y"]})],
            ["its deletion waits for the finalizer kubernetes: the namespace controller, once the "
             "namespace is empty", "it is not empty: Configmap a has the finalizers x/y"],
            id="a namespace that is not empty",
        ),
        pytest.param(
            item("deployments.apps", "d", meta={"generation": 2}, spec={"paused": True},
                 status={"observedGeneration": 1,
                         "conditions": [is_true("ReplicaFailure", "True", "exceeded quota")]}),
            [],
            ["no controller has seen its generation 2 yet, only 1", "it is paused",
             "ReplicaFailure is True: exceeded quota"],
            id="a workload",
        ),
        pytest.param(
            item("replicasets.apps", "r"), [],
            ["no controller has written its status yet"], id="a workload that nobody looks at",
        ),
        pytest.param(
            item("services", "s", spec={"selector": {"app": "web"}}), [web_pod(), pod("other")],
            ["none of the 1 pods that its selector matches is ready"], id="a service",
        ),
        pytest.param(
            item("services", "s", spec={"selector": {"app": "web"}}),
            [web_pod(status={"conditions": [is_true("Ready")]})], [],
            id="a service that is fine",
        ),
        pytest.param(LOST, [], ["it is not ready: silent"], id="a node"),
        pytest.param(
            item("tabs.example.com", "t", status={"conditions": [is_true("Ready", "False", "no")]}),
            [], ["Ready is False: no"], id="a custom object",
        ),
        pytest.param(
            item("tabs.example.com", "t", status="strange", spec=[]), [], [], id="a strange one"
        ),
    ],
)  # fmt: skip
def test_an_object_waits_for(about: Item, others: list[Item], waits: list[str]) -> None:
    assert list(find_waits(about, Snapshot([about, *others]))) == waits
