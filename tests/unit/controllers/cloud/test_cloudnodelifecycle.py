"""Tests what becomes of nodes whose instances are gone or shut down, after upstream's tables.

Source: staging/src/k8s.io/cloud-provider/controllers/nodelifecycle/
node_lifecycle_controller_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from kcm.api.core_v1 import Node, Taint
from kcm.controllers.cloud.cloudnodelifecycle import (
    SHUTDOWN_TAINT,
    CloudNodeLifecycleController,
    CloudNodeLifecycleOptions,
    nodes_to_check,
)
from kcm.reconcile.cloudprovider.interface import CloudError, InstanceMetadata
from kcm.reconcile.contract import Change
from kcm.testing.builders import START, node
from kcm.testing.views import FakeView
from tests.unit.controllers.clouds import CloudWorld

SHUT_DOWN = Taint(key=SHUTDOWN_TAINT, effect="NoSchedule")


def world(*about: Node, exists: bool = True, shut_down: bool = False) -> CloudWorld:
    options = CloudNodeLifecycleOptions(node_monitor_period=timedelta(seconds=7))
    there = CloudWorld(CloudNodeLifecycleController(options), *about)
    if exists:
        there.memory_cloud.instances["n1"] = InstanceMetadata("memory://n1")
    if shut_down:
        there.memory_cloud.shut_down.add("n1")
    return there


def taints(there: CloudWorld) -> list[str]:
    (found,) = there.of(Node)
    assert isinstance(found, Node)
    return [taint.key for taint in found.spec.taints or ()]


# Test_NodesDeleted


@pytest.mark.parametrize("ready", [False, None])
def test_the_node_of_a_deleted_instance_goes(ready: bool | None) -> None:
    there = world(node("n1", ready=ready), exists=False)
    there.sync("n1")
    assert there.of(Node) == []
    assert [(event.reason, event.message) for event in there.events] == [
        ("DeletingNode", "Deleting node n1 because it does not exist in the cloud provider")
    ]


@pytest.mark.parametrize("exists", [True, False])
def test_a_ready_node_is_not_asked_about(exists: bool) -> None:
    there = world(node("n1"), exists=exists)
    there.sync("n1")
    assert there.take_calls() == []
    assert len(there.of(Node)) == 1
    assert there.requeue_after is None


def test_a_node_that_is_not_ready_is_asked_about_again() -> None:
    there = world(node("n1", ready=False))
    there.sync("n1")
    assert there.take_calls() == ["exists", "shutdown"]
    assert there.requeue_after == 7.0
    assert taints(there) == []


def test_of_many_nodes_that_are_not_ready_twenty_are_asked_about_a_second() -> None:
    names = [f"n{number}" for number in range(400)]
    there = world(*(node(name, ready=False) for name in names))
    there.memory_cloud.instances |= {name: InstanceMetadata(f"memory://{name}") for name in names}
    there.now = START + timedelta(seconds=6.5)
    asked, latest = 0, 0.0
    for name in names:
        there.sync(name)
        asked += bool(there.take_calls())
        latest = max(latest, there.requeue_after or 0.0)
    assert asked == pytest.approx(200, rel=0.2)  # the first questions are spread over 13 s
    assert latest == 20


@pytest.mark.parametrize("call", ["exists", "shutdown"])
def test_without_an_answer_nothing_is_done(call: str) -> None:
    there = world(node("n1", ready=False), exists=call == "shutdown", shut_down=True)
    there.memory_cloud.failures[call] = CloudError("err!")
    there.sync("n1")
    assert taints(there) == []
    assert str(there.error).endswith("err!")


# Test_NodesShutdown


def test_the_node_of_an_instance_that_is_shut_down_is_tainted() -> None:
    there = world(node("n1", ready=False), shut_down=True)
    there.sync("n1")
    assert taints(there) == [SHUTDOWN_TAINT]
    there.sync("n1")
    assert taints(there) == [SHUTDOWN_TAINT]
    assert there.requeue_after == 7.0


def test_a_node_that_is_ready_again_loses_the_taint() -> None:
    there = world(node("n1", taints=[Taint(key="kept", effect="NoSchedule"), SHUT_DOWN]))
    there.sync("n1")
    assert taints(there) == ["kept"]
    assert there.take_calls() == []


@pytest.mark.parametrize(
    ("old", "new", "enqueued"),
    [
        (None, node("n1"), False),
        (None, node("n1", ready=False), True),
        (node("n1"), node("n1", ready=None), True),
        (node("n1", ready=False), node("n1", ready=False, labels={"a": "b"}), False),
        (node("n1", ready=False, taints=[SHUT_DOWN]), node("n1", taints=[SHUT_DOWN]), True),
        (node("n1", ready=False), node("n1"), False),
        (node("n1", ready=False), None, False),
    ],
)
def test_only_nodes_that_need_it_are_enqueued(
    old: Node | None, new: Node | None, enqueued: bool
) -> None:
    assert list(nodes_to_check(Change(old, new), FakeView())) == (["n1"] if enqueued else [])


def test_a_node_that_is_gone_needs_nothing() -> None:
    there = world(node("n1", ready=False))
    there.sync("other")
    assert there.take_calls() == []
