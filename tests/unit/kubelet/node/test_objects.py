"""The Node object that the kubelet writes."""

from __future__ import annotations

from kcm.api.core_v1 import NodeCondition, NodeSystemInfo
from kcm.apimachinery.quantity import Quantity
from kcm.kubelet.node import objects
from kcm.kubelet.node.machine import MachineInfo

MACHINE = MachineInfo(cpus=4, memory=2**30, disk=2**34, system=NodeSystemInfo())


def test_resources_and_conditions_of_others_stay() -> None:
    node = objects.build_node("n", {}, ())
    others = NodeCondition(type="Custom", status="True")
    node = node.with_status(
        node.status.replace(capacity={"example.com/gpu": Quantity(2)}, conditions=[others])
    )
    status = objects.build_status(
        node,
        MACHINE,
        capacity=MACHINE.capacity(110),
        reserved={"cpu": Quantity(1), "memory": Quantity("4Gi")},
        addresses=[],
        conditions=[NodeCondition(type="Ready", status="True")],
        port=0,
    )
    assert (status.capacity or {})["example.com/gpu"] == Quantity(2)
    allocatable = status.allocatable or {}
    assert allocatable["example.com/gpu"] == Quantity(2)
    assert (allocatable["cpu"], allocatable["memory"]) == (Quantity(3), Quantity(0))
    assert [condition.type for condition in status.conditions or ()] == ["Custom", "Ready"]
