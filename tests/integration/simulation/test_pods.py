from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.core_v1 import EphemeralContainer, Node, Pod, PodCondition
from kcm.simulation import commands
from kcm.simulation.commands import NodeCommand
from kcm.simulation.scripting.scripts import PREFIX
from kcm.store import Subresource, WriteItem
from tests.integration.simulation.conftest import NODES, PODS, World


def test_a_bound_pod_runs_and_the_others_wait(world: World) -> None:
    world.go()
    world.pod("mine")
    world.pod("unbound", node="")
    world.pod("elsewhere", node="metal-1")
    world.go(0.5)
    assert world.list_pods()["mine"] == "0/1 ContainerCreating"
    world.go(1)
    assert world.list_pods() == {
        "mine": "1/1 Running",
        "unbound": "0/1 Pending",
        "elsewhere": "0/1 Pending",
    }
    status = world.get("mine").status
    assert (status.pod_ip, status.host_ip) == ("10.64.0.1", "172.16.0.1")
    reasons = [reason for host, reason, _ in world.recorded.events if reason != "Starting"]
    assert reasons == ["Pulled", "Created", "Started"]


def test_addresses_come_from_the_nodes_range_and_are_unique(world: World) -> None:
    world.go()
    world.store.patch(NODES, "node-2", {"spec": {"podCIDR": "10.1.2.0/24"}})
    world.pod("a", node="node-2")
    world.pod("b", node="node-2")
    world.pod("c", node="node-1")
    world.go(2)
    assert [world.get(n).status.pod_ip for n in "abc"] == ["10.1.2.1", "10.1.2.2", "10.64.0.1"]


def test_a_deleted_pod_is_removed_when_its_containers_have_ended(world: World) -> None:
    world.go()
    world.pod("a")
    world.pod("stubborn", annotations={PREFIX + "stop-after": "never"})
    world.go(3)
    world.delete("a")
    world.delete("stubborn", grace_period_seconds=5)
    world.go(0)
    assert world.list_pods() == {"a": "1/1 Terminating", "stubborn": "1/1 Terminating"}
    world.go(2)
    assert list(world.list_pods()) == ["stubborn"]
    world.go(5)
    assert world.list_pods() == {}


def test_a_pod_with_finalizers_ends_and_waits_for_them(world: World) -> None:
    world.go()
    world.pod("a")
    world.store.patch(PODS, "default/a", {"metadata": {"finalizers": ["example.com/f"]}})
    world.go(3)
    world.delete("a")
    world.go(5)
    pod = world.get("a")
    assert (pod.metadata.deletion_grace_period_seconds, pod.status.phase) == (0, "Succeeded")
    world.store.patch(PODS, "default/a", {"metadata": {"finalizers": None}})
    world.go(0)
    assert world.list_pods() == {}


def test_what_does_not_fit_is_refused_and_room_is_given_back(world: World) -> None:
    world.go()
    for name in "abcd":
        world.pod(name, restartPolicy="Never")
    world.pod("e")
    world.go(1)
    assert world.list_pods()["e"] == "0/1 OutOfcpu"
    assert world.get("e").status.phase == "Failed"
    world.go(5)
    world.pod("f")
    world.go(2)
    assert world.list_pods()["f"] == "1/1 Running"


def test_labels_and_ports_are_looked_at_as_well(world: World) -> None:
    world.go()
    ports = [{"name": "main", "image": "i:1", "ports": [{"containerPort": 80, "hostPort": 8080}]}]
    world.pod("picky", nodeSelector={"disk": "fast"})
    world.pod("first", containers=ports, restartPolicy="Never")
    world.go(1)
    world.pod("second", containers=ports)
    world.go(1)
    assert world.list_pods()["picky"] == "0/1 NodeAffinity"
    assert world.list_pods()["second"] == "0/1 NodePorts"
    assert (world.get("second").status.message or "").startswith("Pod was rejected: Predicate")
    world.go(5)  # the first one has ended by now
    world.pod("third", containers=ports)
    world.go(2)
    assert world.list_pods()["third"] == "1/1 Running"


def test_pods_of_a_silent_node_are_left_alone_and_caught_up_with(world: World) -> None:
    world.go()
    world.pod("a")
    world.pod("b")
    world.go(3)
    commands.send(world.store, {"node-1": NodeCommand("partitioned", world.clock.now())})
    world.go(1)
    world.delete("a")
    world.pod("late")
    world.go(60)
    assert world.list_pods() == {"a": "1/1 Terminating", "b": "1/1 Running", "late": "0/1 Pending"}
    commands.send(world.store, {"node-1": None})
    world.go(3)
    assert world.list_pods() == {"b": "1/1 Running", "late": "1/1 Running"}


def test_a_restarted_simulator_finds_its_pods(world: World) -> None:
    world.go()
    world.pod("a")
    world.pod("crash", annotations={PREFIX + "outcome": "crash"})
    world.go(5)
    before = {name: world.get(name).status for name in ("a", "crash")}
    world.restart()
    world.go()
    assert {name: world.get(name).status for name in ("a", "crash")} == before
    world.pod("b")
    world.go(2)
    assert world.get("b").status.pod_ip not in (before["a"].pod_ip, before["crash"].pod_ip)
    world.go(20)
    statuses = world.get("crash").status.container_statuses or []
    assert statuses[0].restart_count >= 2


def test_a_pod_marked_not_ready_by_others_is_put_right_and_their_conditions_are_kept(
    world: World,
) -> None:
    world.go()
    pod = world.pod("a")
    world.go(3)
    pod = world.get("a")
    conditions = [
        c.replace(status="False") if c.type == "Ready" else c for c in pod.status.conditions or ()
    ]
    conditions.append(PodCondition(type="DisruptionTarget", status="True"))
    world.store.update_status(pod.with_status(pod.status.replace(conditions=conditions)))
    world.go(0.5)
    by_type = {c.type: c.status for c in world.get("a").status.conditions or ()}
    assert (by_type["Ready"], by_type["DisruptionTarget"]) == ("True", "True")


def test_a_pod_replaced_under_its_name_is_another_pod(world: World) -> None:
    world.go()
    first = world.pod("a")
    world.go(3)
    world.delete("a", grace_period_seconds=0)
    second = world.pod("a")
    world.go(0)
    assert world.list_pods() == {"a": "0/1 ContainerCreating"}
    world.go(2)
    assert world.get("a").uid == second.uid != first.uid
    assert world.list_pods() == {"a": "1/1 Running"}


def test_a_pod_bound_later_runs(world: World) -> None:
    world.go()
    world.pod("a", node="")
    world.go(1)
    pod = world.get("a")
    bound = pod.with_spec(pod.spec.replace(node_name="node-3"))
    item = world.store.build_update(bound, pod, subresource=Subresource.BINDING)
    assert item is not None
    assert world.store.write([item])[0].ok
    world.go(2)
    assert world.list_pods() == {"a": "1/1 Running"}


def test_a_wrong_annotation_is_told_as_an_event(world: World) -> None:
    world.go()
    world.pod("a", annotations={PREFIX + "outcome": "boom"})
    world.go(2)
    assert world.list_pods() == {"a": "1/1 Running"}
    messages = [text for _, reason, text in world.recorded.events if reason == "InvalidSimulation"]
    assert len(messages) == 1
    assert '"boom" is no outcome' in messages[0]


def test_what_was_missed_is_read_again_after_the_watch_was_cut(world: World) -> None:
    world.go()
    world.pod("a")
    world.pod("b")
    world.go(3)
    world.delete("a", grace_period_seconds=0)
    world.pod("c")
    world.simulator.begin()
    world.go(2)
    assert world.list_pods() == {"b": "1/1 Running", "c": "1/1 Running"}
    assert set(world.simulator.pods.tracked) == {"default/b", "default/c"}


def sized(cpu: str, policy: str = "NotRequired") -> list[dict[str, Any]]:
    resize = [{"resourceName": "cpu", "restartPolicy": policy}]
    requests = {"requests": {"cpu": cpu}}
    return [{"name": "main", "image": "i:1", "resources": requests, "resizePolicy": resize}]


def resize(world: World, name: str, cpu: str) -> None:
    change = {"resources": {"requests": {"cpu": cpu}}}

    def changed(old: Pod) -> Pod:
        container = codec.to_dict(old)["spec"]["containers"][0] | change
        spec = codec.to_dict(old)["spec"] | {"containers": [container]}
        return codec.decode(codec.to_dict(old) | {"spec": spec}, PODS)

    world.store.modify(PODS, f"default/{name}", changed, subresource=Subresource.RESIZE)


def test_a_pod_is_resized_when_its_node_has_room(world: World) -> None:
    world.go()
    allocatable = world.store.get(NODES, "node-1")
    assert isinstance(allocatable, Node)
    room = int(str((allocatable.status.allocatable or {})["cpu"]))
    world.pod("a", containers=sized("1"))
    world.pod("b", containers=sized(f"{room - 2}"))
    world.go(3)

    def look(name: str) -> tuple[str, list[tuple[str, str | None]]]:
        status = world.get(name).status
        given = (status.container_statuses or [])[0]
        requests = (given.resources.requests if given.resources else None) or {}
        told = [(c.type, c.reason) for c in status.conditions or () if "Resize" in c.type]
        return str(requests["cpu"]), told

    resize(world, "a", "2")
    world.go(1)
    assert look("a") == ("2", [])
    resize(world, "a", "3")
    world.go(1)
    assert look("a") == ("2", [("PodResizePending", "Deferred")])
    resize(world, "a", f"{room + 1}")
    world.go(1)
    assert look("a") == ("2", [("PodResizePending", "Infeasible")])
    resize(world, "a", "3")
    world.delete("b")
    world.go(15)
    assert look("a") == ("3", [])
    assert world.list_pods()["a"] == "1/1 Running"
    reasons = [reason for _, reason, _ in world.recorded.events if "Resize" in reason]
    assert reasons == ["ResizeDeferred", "ResizeInfeasible", "ResizeDeferred"]


def test_a_resize_restarts_where_the_policy_says_so(world: World) -> None:
    world.go()
    world.pod("a", containers=sized("1", "RestartContainer"))
    world.go(3)
    resize(world, "a", "2")
    world.go(8)
    statuses = world.get("a").status.container_statuses or []
    assert [(one.restart_count, one.ready) for one in statuses] == [(1, True)]


def test_a_debugger_runs_beside_the_container_and_after_a_restart(world: World) -> None:
    world.go()
    world.pod("a")
    world.go(3)

    def add(old: Pod) -> Pod:
        debugger = EphemeralContainer(name="debug", image="busybox")
        return old.with_spec(old.spec.replace(ephemeral_containers=[debugger]))

    world.store.modify(PODS, "default/a", add, subresource=Subresource.EPHEMERAL_CONTAINERS)
    world.go(3)
    for _ in range(2):
        statuses = world.get("a").status.ephemeral_container_statuses or []
        assert [one.state.running is not None for one in statuses if one.state] == [True]
        assert world.list_pods()["a"] == "1/1 Running"
        world.restart()
        world.go(3)


def test_a_pod_whose_last_status_a_failover_has_undone_is_removed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_removals(items: Sequence[WriteItem[Pod]], **options: Any) -> Any:
        if any(item.op == "delete" for item in items):
            raise errors.StoreUnavailable("away")
        return write(items, **options)

    world.go()
    world.pod("a")
    world.go(3)
    write = world.simulator_store.write
    monkeypatch.setattr(world.simulator_store, "write", refuse_removals)
    world.delete("a", grace_period_seconds=1)
    undo = world.keep("pods", "default/a")
    with pytest.raises(errors.StoreUnavailable):
        world.go(3)
    assert world.get("a").status.phase == "Succeeded"
    undo()
    monkeypatch.undo()
    world.simulator.begin()
    world.go(1)
    assert world.list_pods() == {}
