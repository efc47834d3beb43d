"""The actions of a sync of a pod, as a table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kcm.api.core_v1 import EphemeralContainer, ResourceRequirements
from kcm.api.core_v1.containers import ContainerResizePolicy
from kcm.apimachinery.quantity import Quantity
from kcm.kubelet.cri import Resources, Sandbox
from kcm.kubelet.kuberuntime.actions import (
    ContainerHealth,
    PodActions,
    compute_pod_actions,
    is_resizing,
    should_restart,
)
from kcm.kubelet.kuberuntime.view import PodView
from tests.unit.kubelet.views import NOW, container, container_view, pod, sandbox, view


def summarize(actions: PodActions) -> str:
    """Returns the actions as a short text."""
    words = []
    if actions.kill_pod:
        words.append("kill-pod")
    if actions.create_sandbox:
        words.append(f"sandbox{actions.attempt}")
    words += [f"kill:{kill.container.name}" for kill in actions.to_kill]
    words += [f"ephemeral{index}" for index in actions.ephemeral_to_start]
    words += [f"init{index}" for index in actions.init_to_start]
    words += [f"start{index}" for index in actions.to_start]
    return " ".join(words)


@pytest.mark.parametrize(
    ("policy", "states", "expected"),
    [
        ("Always", "main=running other=running", ""),
        ("Always", "", "start0 start1"),
        ("Always", "main=0 other=running", "start0"),
        ("OnFailure", "main=0 other=running", ""),
        ("OnFailure", "main=1 other=running", "start0"),
        ("Never", "main=1 other=running", ""),
        ("Never", "main=1 other=0", "kill-pod"),
        ("OnFailure", "main=0 other=0", "kill-pod"),
        ("Always", "main=0 other=0", "start0 start1"),
        ("Always", "main=created other=running", "start0"),
        ("Always", "main=unknown other=running", "kill:main start0"),
    ],
)
def test_ordinary_containers_are_started_by_the_restart_policy(
    policy: str, states: str, expected: str
) -> None:
    assert (
        summarize(compute_pod_actions(pod("main", "other", policy=policy), view(states)))
        == expected
    )


# after TestComputePodActionsWithInitAndEphemeralContainers in
# pkg/kubelet/kuberuntime/kuberuntime_manager_test.go
@pytest.mark.parametrize(
    ("policy", "states", "expected"),
    [
        ("Always", "main=running debug=running", ""),
        ("Always", "main=running", "ephemeral0"),
        ("Always", "main=running debug=0", ""),
        ("Always", "main=running debug=1", ""),
        ("Always", "main=0 debug=running", "start0"),
        ("Never", "main=0 debug=running", "kill-pod"),
        ("Always", "first=running", "ephemeral0"),
    ],
)
def test_ephemeral_containers_start_once(policy: str, states: str, expected: str) -> None:
    debugged = pod("main", policy=policy, init="first" if "first" in states else "")
    ephemeral = [EphemeralContainer(name="debug", image="busybox")]
    debugged = debugged.with_spec(debugged.spec.replace(ephemeral_containers=ephemeral))
    assert summarize(compute_pod_actions(debugged, view(states))) == expected


# after TestComputePodActionsForPodResize in pkg/kubelet/kuberuntime/kuberuntime_manager_test.go
@pytest.mark.parametrize(
    ("policy", "has", "expected", "updated"),
    [
        ("NotRequired", Resources(memory_bytes=2**30, cpu_shares=1024, cpu_quota=100_000), "", []),
        ("NotRequired", Resources(memory_bytes=2**29, cpu_shares=1024, cpu_quota=100_000), "",
         ["main-id"]),
        ("NotRequired", Resources(memory_bytes=2**30, cpu_shares=512, cpu_quota=100_000), "",
         ["main-id"]),
        ("RestartContainer",
         Resources(memory_bytes=2**29, cpu_shares=1024, cpu_quota=100_000), "kill:main start0", []),
        ("RestartContainer",
         Resources(memory_bytes=2**30, cpu_shares=512, cpu_quota=100_000), "", ["main-id"]),
        ("NotRequired", None, "", []),
    ],
)  # fmt: skip
def test_a_running_container_gets_other_resources(
    policy: str, has: Resources | None, expected: str, updated: list[str]
) -> None:
    amounts = {"cpu": Quantity("1"), "memory": Quantity("1Gi")}
    resources = ResourceRequirements(limits=amounts, requests=amounts)
    resized = pod("main")
    spec = resized.spec.containers[0].replace(
        resources=resources,
        resize_policy=[ContainerResizePolicy(resource_name="memory", restart_policy=policy)],
    )
    resized = resized.with_spec(resized.spec.replace(containers=[spec]))
    running = replace(container_view("main", "running"), resources=has)
    seen = replace(view("main=running"), containers=[running])
    actions = compute_pod_actions(resized, seen)
    assert summarize(actions) == expected
    assert [update.id for update in actions.to_update] == updated
    assert is_resizing(resized, seen) == bool(expected or updated)


@pytest.mark.parametrize(
    ("policy", "boxes", "states", "expected"),
    [
        ("Always", [], "", "kill-pod sandbox0 start0"),
        ("Always", [sandbox(ready=False)], "main=0", "kill-pod sandbox1 start0"),
        ("Never", [sandbox(ready=False)], "main=0", "kill-pod"),
        ("OnFailure", [sandbox(ready=False)], "main=0", "kill-pod"),
        ("OnFailure", [sandbox(ready=False)], "main=1", "kill-pod sandbox1 start0"),
        ("Always", [sandbox(ip="")], "main=running", "kill-pod sandbox1 start0"),
        ("Always", [sandbox(attempt=1), sandbox()], "main=running", "kill-pod sandbox2 start0"),
    ],
)
def test_a_lost_sandbox_starts_the_pod_over(
    policy: str, boxes: list[Sandbox], states: str, expected: str
) -> None:
    seen = replace(view(states), sandboxes=boxes)
    assert summarize(compute_pod_actions(pod(policy=policy), seen)) == expected


@pytest.mark.parametrize(
    ("policy", "init", "states", "expected"),
    [
        ("Always", "a b", "", "init0"),
        ("Always", "a b", "a=running", ""),
        ("Always", "a b", "a=0", "init1"),
        ("Always", "a b", "a=0 b=running", ""),
        ("Always", "a b", "a=0 b=0", "start0"),
        ("Always", "a b", "b=0", "start0"),
        ("Always", "a b", "a=1", "init0"),
        ("OnFailure", "a b", "a=1", "init0"),
        ("Never", "a b", "a=1", "kill-pod"),
        ("Always", "a b", "a=created", "init0"),
        ("Always", "a b", "a=0 b=0 main=running", ""),
        ("Always", "a b", "main=1", "start0"),
        # Sidecars: the next one starts when they have, and they are kept running for ever.
        ("Always", "s* b", "s=running", "init1"),
        ("Always", "s* b", "s=running b=running", ""),
        ("Always", "s* b", "s=1 b=running", "init0"),
        ("Always", "a s*", "a=0 s=running", "start0"),
        ("Always", "a s*", "a=0 s=running main=running", ""),
        ("Always", "a s*", "a=0 s=0 main=running", "init1"),
        ("Never", "a s*", "a=0 s=1 main=running", "init1"),
        ("Never", "s*", "s=running main=0", "kill-pod"),
        # In an unknown state: restarted by the policy, sidecars always.
        ("Never", "a", "a=unknown", "kill-pod"),
        ("OnFailure", "a", "a=unknown", "kill:a init0"),
        ("Always", "a", "a=unknown", "kill:a init0"),
        ("Never", "s*", "s=unknown", "kill:s init0"),
        ("Never", "a s*", "s=running main=0", "kill-pod"),
        ("Never", "a s*", "s=1 main=0", "kill-pod"),
        ("Always", "a s*", "main=running", "init1"),
        ("Always", "s*? b", "s=running", ""),
    ],
)
def test_init_containers_run_in_order_and_sidecars_stay(
    policy: str, init: str, states: str, expected: str
) -> None:
    assert summarize(compute_pod_actions(pod(init=init, policy=policy), view(states))) == expected


@pytest.mark.parametrize(
    ("policy", "health", "expected", "reason"),
    [
        ("Always", ContainerHealth(liveness=lambda _: False), "kill:main start0", "LivenessProbe"),
        ("Never", ContainerHealth(liveness=lambda _: False), "kill:main", "LivenessProbe"),
        ("Always", ContainerHealth(startup=lambda _: False), "kill:main start0", "StartupProbe"),
        ("Always", ContainerHealth(liveness=lambda _: True, startup=lambda _: None), "", None),
    ],
)
def test_failed_probes_end_containers(
    policy: str, health: ContainerHealth, expected: str, reason: str | None
) -> None:
    actions = compute_pod_actions(
        pod("main", "other", policy=policy), view("main=running other=0"), health
    )
    words = [word for word in summarize(actions).split() if word != "start1"]
    if policy == "Never" and not actions.to_start:
        words = [word for word in words if word != "kill-pod"]
    assert " ".join(words) == expected
    assert [kill.reason for kill in actions.to_kill] == ([reason] if reason else [])


def test_another_image_replaces_the_container_whatever_the_policy() -> None:
    changed = replace(container_view("main", "running"), hash="other")
    seen = PodView("u", "web", "default", ("127.64.0.1",), [changed], [sandbox()])
    actions = compute_pod_actions(pod(policy="Never"), seen)
    assert summarize(actions) == "kill:main start0"
    assert actions.to_kill[0].message == "Container main definition changed, will be restarted"


def test_a_sidecar_whose_startup_probe_succeeded_lets_the_next_one_start() -> None:
    started = ContainerHealth(startup=lambda _: True)
    assert summarize(compute_pod_actions(pod(init="s*? b"), view("s=running"), started)) == "init1"
    failed = ContainerHealth(startup=lambda _: False)
    actions = summarize(compute_pod_actions(pod(init="s*? b"), view("s=running"), failed))
    assert actions == "kill:s init0"


def test_nothing_of_a_deleted_pod_starts_again() -> None:
    deleted = pod(deleting=NOW)
    assert not should_restart(container("main"), deleted, view("main=1"))


def test_a_container_with_a_policy_of_its_own_starts_again_by_that() -> None:
    ended = view("main=1 other=0")
    restarted = pod("main", "other", policy="Never")
    restarted.spec.containers[0].restart_policy = "OnFailure"
    assert summarize(compute_pod_actions(restarted, ended)) == "start0"
    failed = pod(init="i", policy="Never")
    assert summarize(compute_pod_actions(failed, view("i=1"))) == "kill-pod"
    (failed.spec.init_containers or [])[0].restart_policy = "OnFailure"
    assert summarize(compute_pod_actions(failed, view("i=1"))) == "init0"
