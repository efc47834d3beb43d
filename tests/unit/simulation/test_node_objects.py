from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from kcm.apimachinery.quantity import Quantity
from kcm.helpers import node_reports
from kcm.simulation import node_objects
from kcm.simulation.options import SimulatorOptions
from kcm.simulation.scripting.scripts import NO_NODE_SCRIPT, NodeScript

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OPTIONS = SimulatorOptions(count=3)


def test_a_node_registers_as_a_kubelet_does() -> None:
    node = node_objects.new_node(OPTIONS, 1, "node-2")
    assert node.spec.taints is None
    assert node.labels["topology.kubernetes.io/zone"] == "b"
    assert node.labels["kubernetes.io/hostname"] == "node-2"
    status = node_objects.status_of(node, OPTIONS, 1, NO_NODE_SCRIPT, NOW)
    assert [(c.type, c.status, c.reason) for c in status.conditions or ()] == [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID"),
        ("Ready", "True", "KubeletReady"),
    ]
    assert [a.address for a in status.addresses or ()] == ["172.16.0.2", "node-2"]
    assert status.node_info is not None
    assert status.node_info.container_runtime_version.startswith("simulated://")
    assert status.node_info.kubelet_version.startswith("v1.36.2-kcm")


def test_a_node_of_a_cloud_waits_for_its_controller() -> None:
    node = node_objects.new_node(replace(OPTIONS, external_cloud=True), 0, "node-1")
    assert node.spec.taints == [node_objects.UNINITIALIZED]


def test_states_show_as_conditions_and_transitions_as_events() -> None:
    node = node_objects.new_node(OPTIONS, 0, "node-1")
    before = node_objects.status_of(node, OPTIONS, 0, NO_NODE_SCRIPT, NOW)
    node = node.with_status(before)
    script = NodeScript(states=frozenset({"not-ready", "memory-pressure"}))
    later = NOW + timedelta(seconds=60)
    after = node_objects.status_of(node, OPTIONS, 0, script, later)
    assert node_reports.transitions(after, before) == ["NodeHasInsufficientMemory", "NodeNotReady"]
    since = {c.type: c.last_transition_time for c in after.conditions or ()}
    assert (since["Ready"], since["DiskPressure"]) == (later, NOW)
    assert node_reports.differs(after, before)


def test_an_adopted_node_keeps_what_others_added() -> None:
    node = node_objects.new_node(OPTIONS, 0, "node-1").with_metadata(labels={"mine": "x"})
    updated = node_objects.update_labels(node, OPTIONS, 0)
    assert updated.labels["mine"] == "x"
    assert updated.labels["topology.kubernetes.io/zone"] == "a"
    assert node_objects.update_labels(updated, OPTIONS, 0) is updated


def test_a_resource_that_somebody_advertised_stays_until_it_is_taken_back() -> None:
    node = node_objects.new_node(OPTIONS, 0, "node-1")
    status = node_objects.status_of(node, OPTIONS, 0, NO_NODE_SCRIPT, NOW)
    four = {"example.com/gpu": Quantity(4)}
    advertised = status.replace(capacity={**(status.capacity or {}), **four})
    after = node_objects.status_of(node.with_status(advertised), OPTIONS, 0, NO_NODE_SCRIPT, NOW)
    assert (after.capacity or {})["example.com/gpu"] == Quantity(4)
    assert (after.allocatable or {})["example.com/gpu"] == Quantity(4)

    taken_back = after.replace(capacity=status.capacity)
    withdrawn = node_objects.status_of(
        node.with_status(taken_back), OPTIONS, 0, NO_NODE_SCRIPT, NOW
    )
    assert "example.com/gpu" not in (withdrawn.allocatable or {})
