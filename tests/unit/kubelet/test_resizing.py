"""Whether a node resizes a pod in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kcm.api.core_v1 import Pod
from kcm.apimachinery.quantity import Quantity
from kcm.kubelet import resizing
from kcm.kubelet.admission import NodeUsage, find_resize_refusal
from kcm.kubelet.pod_workers.allocations import Allocations
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.reconcile.plan import Event
from kcm.testing import builders
from tests.typed_objects import decode_as

ALLOCATABLE = {"cpu": Quantity("4"), "memory": Quantity("4Gi"), "pods": Quantity("10")}
NODE = builders.node("n", status={"allocatable": ALLOCATABLE})


def pod(
    cpu: str, memory: str = "1Gi", name: str = "a", *, policy: str = "", status: Any = None
) -> Pod:
    """Returns a pod that asks for this, and was given what `status` says if it says something."""
    container: dict[str, Any] = {"name": "c", "image": "i"}
    container["resources"] = {"requests": {"cpu": cpu, "memory": memory}}
    if policy:
        container["resizePolicy"] = [
            {"resourceName": "cpu", "restartPolicy": policy.partition("/")[0]},
            {"resourceName": "memory", "restartPolicy": policy.partition("/")[2]},
        ]
    body: dict[str, Any] = {"spec": {"containers": [container], "nodeName": "n"}}
    body["metadata"] = {"name": name, "namespace": "d", "uid": name}
    if status is not None:
        given = {"requests": {"cpu": status[0], "memory": status[1]}}
        running = {"name": "c", "state": {"running": {}}, "resources": given}
        body["status"] = {"containerStatuses": [running]}
    return decode_as(Pod, body)


# after TestHandlePodResourcesResize in pkg/kubelet/kubelet_test.go
@pytest.mark.parametrize(
    ("cpu", "memory", "others", "reason", "message"),
    [
        ("500m", "512Mi", [], "", ""),
        ("3", "1Gi", ["1"], "", ""),
        ("3500m", "1Gi", ["1"], "Deferred",
         "Node didn't have enough resource: cpu, requested: 3500, used: 1000, capacity: 4000"),
        ("5", "1Gi", [], "Infeasible",
         "Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000"),
        ("1", "8Gi", [], "Infeasible",
         "Node didn't have enough capacity: memory, requested: 8589934592, capacity: 4294967296"),
        ("5", "8Gi", [], "Infeasible",
         "Node didn't have enough capacity: memory, requested: 8589934592, capacity: 4294967296"),
    ],
)  # fmt: skip
def test_a_resize_waits_for_room_or_for_ever(
    cpu: str, memory: str, others: Sequence[str], reason: str, message: str
) -> None:
    used = NodeUsage.of([pod(other, name=f"o{n}") for n, other in enumerate(others)])
    refusal = find_resize_refusal(pod(cpu, memory), used, NODE)
    found = (refusal.reason, refusal.message) if refusal else ("", "")
    assert found == (reason, message)


# after TestComputePodActionsForPodResize in pkg/kubelet/kuberuntime/kuberuntime_manager_test.go
@pytest.mark.parametrize(
    ("policy", "changed", "restarted"),
    [
        ("", "cpu memory", False),
        ("NotRequired/NotRequired", "cpu memory", False),
        ("RestartContainer/NotRequired", "cpu", True),
        ("RestartContainer/NotRequired", "memory", False),
        ("NotRequired/RestartContainer", "memory", True),
        ("RestartContainer/RestartContainer", "cpu memory", True),
        ("RestartContainer/RestartContainer", "", False),
    ],
)
def test_the_resize_policy_says_whether_a_container_restarts(
    policy: str, changed: str, restarted: bool
) -> None:
    before = pod("1", "1Gi", policy=policy)
    after = pod("2" if "cpu" in changed else "1", "2Gi" if "memory" in changed else "1Gi",
                policy=policy)  # fmt: skip
    names = resizing.list_changed(after, resizing.wanted_by(before), restarts=True)
    assert names == (["c"] if restarted else [])


class Sink:
    """Keeps Events."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def record(self, event: Event, component: str, host: str = "") -> None:
        self.reasons.append(event.reason)


class World:
    """The allocations of a node with other pods."""

    def __init__(self, *others: Pod) -> None:
        self.pods = list(others)
        self.sink = Sink()
        recorder = KubeletEventRecorder(self.sink, "n")
        self.allocations = Allocations(lambda: self.pods, lambda: NODE, recorder)

    def cpu_of(self, given: Pod) -> str:
        return str((given.spec.containers[0].resources.requests or {})["cpu"])


def test_a_pod_keeps_what_it_has_until_there_is_room() -> None:
    other = pod("2", name="b")
    world = World(other)
    assert world.cpu_of(world.allocations.resize(pod("1"))) == "1"
    wanted = pod("3")
    assert world.cpu_of(world.allocations.resize(wanted)) == "1"
    assert world.cpu_of(world.allocations.resize(wanted)) == "1"
    refusal = world.allocations.refusal("a")
    assert refusal is not None
    assert (refusal.reason, world.sink.reasons) == ("Deferred", ["ResizeDeferred"])
    world.pods = []
    assert world.cpu_of(world.allocations.resize(wanted)) == "3"
    assert world.allocations.refusal("a") is None


def test_what_a_pod_asks_for_in_vain_does_not_count_for_others() -> None:
    big = pod("8", name="b", status=("1", "1Gi"))
    world = World(big)
    assert world.cpu_of(world.allocations.resize(big)) == "1"
    assert world.sink.reasons == ["ResizeInfeasible"]
    world.allocations.resize(pod("1"))
    assert world.cpu_of(world.allocations.resize(pod("3"))) == "3"


def test_after_a_restart_the_status_says_what_a_pod_has() -> None:
    resized = pod("9", status=("2", "1Gi"))
    world = World()
    assert world.cpu_of(world.allocations.apply(resized)) == "2"
    world.allocations.resize(resized)
    world.allocations.forget("a")
    assert world.allocations.refusal("a") is None


def test_a_resize_is_told_in_conditions() -> None:
    refusal = resizing.Refusal("Deferred", "no room")
    resized = pod("9").with_metadata(generation=3)
    told = resizing.build_conditions(resized, refusal, in_progress=True)
    assert [(c.type, c.status, c.reason, c.observed_generation) for c in told] == [
        ("PodResizePending", "True", "Deferred", 3), ("PodResizeInProgress", "True", None, 3),
    ]  # fmt: skip
    assert resizing.build_conditions(resized, None, in_progress=False) == []
