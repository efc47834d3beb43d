"""Tests what nodes get from the cloud, after upstream's tables.

Source: staging/src/k8s.io/cloud-provider/controllers/node/node_controller_test.go and
staging/src/k8s.io/cloud-provider/node/helpers/address_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import Node, NodeAddress, Taint
from kcm.controllers.cloud.cloudnode.controller import (
    CloudNodeController,
    CloudNodeOptions,
    nodes_to_sync,
)
from kcm.controllers.cloud.cloudnode.nodes import (
    PROVIDED_IP,
    UNINITIALIZED_TAINT,
    reconcile_labels,
    wanted_addresses,
)
from kcm.reconcile.cloudprovider.interface import CloudError, InstanceMetadata
from kcm.reconcile.contract import Change
from kcm.testing.builders import node
from kcm.testing.views import FakeView
from tests.unit.controllers.clouds import CloudWorld

TAINT = Taint(key=UNINITIALIZED_TAINT, value="true", effect="NoSchedule")
HOSTNAME, INTERNAL, EXTERNAL = (
    NodeAddress(type="Hostname", address="node0.cloud.internal"),
    NodeAddress(type="InternalIP", address="10.0.0.1"),
    NodeAddress(type="ExternalIP", address="132.143.154.163"),
)
FOUND = InstanceMetadata(
    provider_id="fake://12345",
    instance_type="t1.micro",
    node_addresses=(HOSTNAME, INTERNAL, EXTERNAL),
    zone="us-east-1a",
    region="us-east",
)


def world(about: Node, found: InstanceMetadata | None = FOUND) -> CloudWorld:
    options = CloudNodeOptions(node_status_update_frequency=timedelta(seconds=60))
    there = CloudWorld(CloudNodeController(options), about)
    if found is not None:
        there.memory_cloud.instances["n1"] = found
    return there


def stored(there: CloudWorld) -> Node:
    (found,) = there.of(Node)
    assert isinstance(found, Node)
    return found


# Test_syncNode


def test_a_node_is_initialized() -> None:
    there = world(node("n1", taints=[Taint(key="kept", effect="NoSchedule"), TAINT]))
    there.sync("n1")
    got = stored(there)
    assert [taint.key for taint in got.spec.taints or ()] == ["kept"]
    assert got.spec.provider_id == "fake://12345"
    assert got.status.addresses == [HOSTNAME, INTERNAL, EXTERNAL]
    assert (
        got.labels.items()
        >= {
            "beta.kubernetes.io/instance-type": "t1.micro",
            "node.kubernetes.io/instance-type": "t1.micro",
            "failure-domain.beta.kubernetes.io/zone": "us-east-1a",
            "topology.kubernetes.io/zone": "us-east-1a",
            "failure-domain.beta.kubernetes.io/region": "us-east",
            "topology.kubernetes.io/region": "us-east",
        }.items()
    )
    assert [(e.type, e.reason, e.message) for e in there.events] == [
        ("Normal", "Synced", "Node synced successfully")
    ]
    assert there.requeue_after == 60.0


def test_a_provider_id_that_is_there_stays() -> None:
    there = world(node("n1", taints=[TAINT], provider_id="fake://mine"))
    there.sync("n1")
    assert stored(there).spec.provider_id == "fake://mine"


def test_additional_labels_do_not_replace_others() -> None:
    more = {"cloud/rack": "7", "mine": "theirs", "node.kubernetes.io/x": "no", "k8s.io/y": "no"}
    found = InstanceMetadata(additional_labels=more)
    there = world(node("n1", taints=[TAINT], labels={"mine": "yes"}), found)
    there.sync("n1")
    labels = dict(stored(there).labels)
    assert labels == {"kubernetes.io/hostname": "n1", "mine": "yes", "cloud/rack": "7"}


@pytest.mark.parametrize("failure", [None, CloudError("down")])
def test_a_node_stays_tainted_until_its_instance_is_found(failure: Exception | None) -> None:
    there = world(node("n1", taints=[TAINT]), None)
    if failure:
        there.memory_cloud.failures["metadata"] = failure
    there.sync("n1")
    assert stored(there).spec.taints == [TAINT]
    assert str(there.error) == (
        f"failed to get instance metadata for node n1: {failure or 'instance not found'}"
    )


def test_a_given_address_that_the_cloud_does_not_know_keeps_the_taint() -> None:
    about = node("n1", taints=[TAINT], metadata={"annotations": {PROVIDED_IP: "10.0.0.9"}})
    there = world(about)
    there.sync("n1")
    assert stored(there).spec.taints == [TAINT]
    assert str(there.error) == (
        'failed to get node modifiers from cloud provider: provided node ip for node "n1" is not '
        "valid: failed to get node address from cloud provider that matches ip: 10.0.0.9"
    )


# TestUpdateNodeStatus, TestUpdateNodeAddress


def test_addresses_are_corrected_periodically() -> None:
    there = world(node("n1", status={"addresses": [INTERNAL]}))
    there.sync("n1")
    assert stored(there).status.addresses == [HOSTNAME, INTERNAL, EXTERNAL]
    assert there.requeue_after == 60.0
    assert there.reasons == []


@pytest.mark.parametrize("found", [None, InstanceMetadata()])
def test_a_node_that_the_cloud_does_not_know_is_left_alone(found: InstanceMetadata | None) -> None:
    about = node("n1", status={"addresses": [INTERNAL]})
    there = world(about, found)
    there.sync("n1")
    assert stored(there) == about
    assert (there.error, there.requeue_after) == (None, 60.0)


@pytest.mark.parametrize(
    ("annotations", "status", "found", "wanted"),
    [
        pytest.param({}, [], [INTERNAL], [INTERNAL], id="as the cloud says"),
        pytest.param({}, [HOSTNAME], [INTERNAL], [INTERNAL, HOSTNAME], id="host name is kept"),
        pytest.param(
            {PROVIDED_IP: "10.0.0.1"},
            [],
            [HOSTNAME, NodeAddress(type="InternalIP", address="10.0.0.2"), INTERNAL, EXTERNAL],
            [INTERNAL, HOSTNAME, EXTERNAL],
            id="the given address comes first, alone of its type",
        ),
        pytest.param(
            {PROVIDED_IP: "10.0.0.1,fd00::1"},
            [],
            [NodeAddress(type="InternalIP", address="fd00::1"), INTERNAL, EXTERNAL],
            [INTERNAL, NodeAddress(type="InternalIP", address="fd00::1"), EXTERNAL],
            id="one of each family",
        ),
    ],
)
def test_addresses_are_ordered(
    annotations: Mapping[str, str],
    status: list[NodeAddress],
    found: list[NodeAddress],
    wanted: list[NodeAddress],
) -> None:
    about = node("n1", metadata={"annotations": dict(annotations)}, status={"addresses": status})
    assert wanted_addresses(about, found) == wanted


def test_a_given_address_that_is_none_is_an_error() -> None:
    about = node("n1", metadata={"annotations": {PROVIDED_IP: "everywhere"}})
    with pytest.raises(errors.ApiError, match="failed to parse node IP"):
        wanted_addresses(about, [INTERNAL])
    there = world(about)
    there.sync("n1")
    assert there.error is None


# Test_reconcileNodeLabels


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        pytest.param({}, {}, id="none"),
        pytest.param(
            {"failure-domain.beta.kubernetes.io/zone": "foo"},
            {"topology.kubernetes.io/zone": "foo"},
            id="requires reconcile",
        ),
        pytest.param(
            {
                "failure-domain.beta.kubernetes.io/region": "foo",
                "topology.kubernetes.io/region": "bar",
            },
            {"topology.kubernetes.io/region": "foo"},
            id="require update to the topology label",
        ),
        pytest.param(
            {"topology.kubernetes.io/zone": "foo"}, {}, id="missing beta labels are not added"
        ),
        pytest.param(
            {"beta.kubernetes.io/instance-type": "large"},
            {"node.kubernetes.io/instance-type": "large"},
            id="instance type",
        ),
    ],
)
def test_stable_labels_follow_deprecated_ones(
    labels: dict[str, str], wanted: dict[str, str]
) -> None:
    about = node("n1", labels=labels)
    there = world(about, None)
    there.sync("n1")
    assert dict(stored(there).labels) == {**about.labels, **wanted}
    assert (reconcile_labels(about) is about) == (not wanted)


@pytest.mark.parametrize(
    ("old", "new", "enqueued"),
    [
        (None, node("n1"), True),
        (None, node("n1", taints=[TAINT]), True),
        (node("n1", taints=[TAINT]), node("n1", taints=[TAINT], labels={"a": "b"}), True),
        (node("n1"), node("n1", labels={"a": "b"}), False),
        (node("n1"), None, False),
    ],
)
def test_new_and_tainted_nodes_are_enqueued(old: Any, new: Any, enqueued: bool) -> None:
    assert list(nodes_to_sync(Change(old, new), FakeView())) == (["n1"] if enqueued else [])
