"""Tests load balancers of Services, after upstream's tables.

Source: staging/src/k8s.io/cloud-provider/controllers/service/controller_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

import pytest

from kcm.api.core_v1 import (
    Node,
    Service,
    Taint,
)
from kcm.controllers.cloud.service.controller import (
    changed_service,
    services_of_changed_node,
)
from kcm.controllers.cloud.service.wanted import (
    EXCLUDE_LABEL,
    FINALIZER,
    TO_BE_DELETED_TAINT,
    name_nodes,
    select_nodes,
)
from kcm.reconcile.cloudprovider.interface import CloudError, ImplementedElsewhere, RetryAfter
from kcm.reconcile.contract import Change
from kcm.testing.builders import START, node, service
from kcm.testing.views import FakeView
from tests.unit.controllers.balancers import (
    KEY,
    balanced,
    finalized,
    ips,
    ports,
    stored,
    world,
)

# TestSyncLoadBalancerIfNeeded


@pytest.mark.parametrize(
    ("about", "exists", "calls"),
    [
        pytest.param(service("web"), False, [], id="service doesn't want LB"),
        pytest.param(balanced(**ports("UDP")), False, ["ensure"], id="udp service that wants LB"),
        pytest.param(balanced(), False, ["ensure"], id="tcp service that wants LB"),
        pytest.param(balanced(**ports("SCTP")), False, ["ensure"], id="sctp service"),
        pytest.param(
            balanced(load_balancer_class="example.com/other"),
            False,
            [],
            id="service specifies loadBalancerClass",
        ),
        pytest.param(
            finalized(service("web")),
            True,
            ["get", "delete"],
            id="service with finalizer that no longer wants LB",
        ),
        pytest.param(
            finalized(balanced(), deletion_timestamp=START),
            True,
            ["get", "delete"],
            id="service that needs cleanup",
        ),
        pytest.param(
            balanced().with_metadata(finalizers=[FINALIZER]),
            False,
            ["ensure"],
            id="service with finalizer that wants LB",
        ),
    ],
)
def test_a_load_balancer_is_made_or_deleted(about: Service, exists: bool, calls: list[str]) -> None:
    there = world(about, node("n1"))
    if exists:
        there.memory_cloud.balancers[about.uid] = ()
    there.sync(KEY)
    assert there.take_calls() == calls
    assert there.error is None
    if calls == ["ensure"]:
        assert stored(there).metadata.finalizers == [FINALIZER]
        assert ips(stored(there)) == ["1.2.3.4"]
        assert there.reasons == ["EnsuringLoadBalancer", "EnsuredLoadBalancer"]
        assert there.memory_cloud.balancers == {about.uid: ("n1",)}
    if exists:
        assert there.memory_cloud.balancers == {}
        assert there.reasons == ["DeletingLoadBalancer", "DeletedLoadBalancer"]
        left = there.of(Service)
        gone = about.metadata.deletion_timestamp is not None
        assert len(left) == (0 if gone else 1)
        for kept in left:
            assert isinstance(kept, Service)
            assert not kept.metadata.finalizers
            assert ips(kept) == []


def test_nothing_is_called_again_for_a_service_that_did_not_change() -> None:
    there = world(balanced(), node("n1"))
    there.sync(KEY)
    assert there.take_calls() == ["ensure"]
    there.sync(KEY)
    assert there.take_calls() == []
    changed = stored(there)
    changed = changed.with_spec(changed.spec.replace(load_balancer_ip="198.18.0.9"))
    there.put(changed)
    there.sync(KEY)
    assert there.take_calls() == ["ensure"]


def test_a_service_without_nodes_gets_a_warning() -> None:
    there = world(balanced())
    there.sync(KEY)
    assert there.reasons == [
        "EnsuringLoadBalancer",
        "UnAvailableLoadBalancer",
        "EnsuredLoadBalancer",
    ]


# TestProcessServiceCreateOrUpdateK8sError, TestSyncService


def test_a_failed_call_is_retried_and_recorded() -> None:
    there = world(balanced(), node("n1"))
    there.memory_cloud.failures["ensure"] = CloudError("quota exceeded")
    there.sync(KEY)
    assert str(there.error) == "failed to ensure load balancer: quota exceeded"
    assert there.events[-1].reason == "SyncLoadBalancerFailed"
    assert there.events[-1].message == (
        "Error syncing load balancer: failed to ensure load balancer: quota exceeded"
    )
    assert stored(there).metadata.finalizers == [FINALIZER]
    there.memory_cloud.failures.clear()
    there.sync(KEY)
    assert ips(stored(there)) == ["1.2.3.4"]


def test_a_cloud_may_ask_for_a_fixed_wait() -> None:
    there = world(balanced(), node("n1"))
    there.memory_cloud.failures["ensure"] = RetryAfter("being made", 30.0)
    there.sync(KEY)
    assert (there.error, there.requeue_after) == (None, 30.0)
    assert there.reasons[-1] == "SyncLoadBalancerFailed"


def test_one_that_is_implemented_elsewhere_is_left_to_others() -> None:
    there = world(balanced(), node("n1"))
    there.memory_cloud.failures["ensure"] = ImplementedElsewhere()
    there.sync(KEY)
    assert there.error is None
    assert there.reasons == ["EnsuringLoadBalancer"]
    assert ips(stored(there)) == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("get", "failed to check if load balancer exists before cleanup: down"),
        ("delete", "failed to delete load balancer: down"),
    ],
)
def test_a_service_stays_until_its_load_balancer_is_deleted(call: str, message: str) -> None:
    about = finalized(balanced(), deletion_timestamp=START)
    there = world(about)
    there.memory_cloud.balancers[about.uid] = ()
    there.memory_cloud.failures[call] = CloudError("down")
    there.sync(KEY)
    assert str(there.error) == message
    assert stored(there).metadata.finalizers == [FINALIZER]
    there.memory_cloud.failures.clear()
    there.sync(KEY)
    assert there.of(Service) == []
    there.sync(KEY)
    assert there.error is None


# TestProcessServiceDeletion


def test_the_load_balancer_of_a_service_that_vanished_is_deleted() -> None:
    """Somebody removed the finalizer."""
    there = world(balanced(), node("n1"))
    there.sync(KEY)
    there.remove(there.objects["services", KEY])
    there.take_calls()
    there.memory_cloud.failures["delete"] = CloudError("down")
    there.sync(KEY)
    assert there.events[-1].reason == "DeleteLoadBalancerFailed"
    there.memory_cloud.failures.clear()
    there.sync(KEY)
    assert there.memory_cloud.balancers == {}
    assert there.memory[KEY] == {}
    there.take_calls()
    there.sync(KEY)
    assert there.take_calls() == []


def test_a_service_that_was_replaced_gets_a_load_balancer_of_its_own() -> None:
    there = world(balanced(), node("n1"))
    there.sync(KEY)
    there.put(balanced().with_metadata(uid="another"))
    there.take_calls()
    there.sync(KEY)
    assert there.take_calls() == ["delete", "ensure"]
    assert there.memory_cloud.balancers == {"another": ("n1",)}


NODE1 = node("node1")

# --- which keys


@pytest.mark.parametrize(
    ("old", "new", "enqueued"),
    [
        # TestNeedsUpdate
        pytest.param(balanced(), service("web"), True, id="type no longer wants LB"),
        pytest.param(service("web"), balanced(), True, id="type wants LB"),
        pytest.param(balanced(), balanced(), False, id="nothing changes"),
        pytest.param(service("web"), service("web", external_ips=["1.2.3.4"]), False, id="no LB"),
        pytest.param(balanced(), balanced(**ports("UDP")), True, id="ports"),
        pytest.param(balanced(), balanced(session_affinity="ClientIP"), True, id="affinity"),
        pytest.param(balanced(), balanced(load_balancer_ip="5.6.7.8"), True, id="loadBalancerIP"),
        pytest.param(balanced(), balanced(external_ips=["1.2.3.4"]), True, id="externalIPs"),
        pytest.param(
            balanced(), balanced(load_balancer_source_ranges=["10.0.0.0/8"]), True, id="ranges"
        ),
        pytest.param(
            balanced(), balanced().with_metadata(annotations={"a": "b"}), True, id="annotations"
        ),
        pytest.param(balanced(), balanced().with_metadata(uid="other"), True, id="uid"),
        pytest.param(
            balanced(), balanced(external_traffic_policy="Local"), True, id="traffic policy"
        ),
        pytest.param(
            balanced(), balanced(health_check_node_port=30123), True, id="health check port"
        ),
        pytest.param(balanced(), balanced(selector={"app": "x"}), False, id="selector"),
        # TestNeedsCleanup
        pytest.param(
            finalized(balanced()),
            finalized(balanced(), deletion_timestamp=START),
            True,
            id="deleted",
        ),
        pytest.param(
            balanced(load_balancer_class="a.b/c"),
            balanced(load_balancer_class="a.b/c", external_ips=["1.2.3.4"]),
            False,
            id="another class",
        ),
        pytest.param(None, balanced(), True, id="added"),
        pytest.param(None, service("web"), False, id="added without"),
        pytest.param(balanced(), None, True, id="gone"),
    ],
)
def test_changes_that_matter_enqueue_the_service(
    old: Service | None, new: Service | None, enqueued: bool
) -> None:
    keys = list(changed_service(Change(old, new), FakeView()))
    assert keys == ([KEY] if enqueued else [])


@pytest.mark.parametrize(
    ("old", "new", "enqueued"),
    [
        # TestShouldSyncUpdatedNode_individualPredicates
        pytest.param(NODE1, node("node1", provider_id="x://1"), True, id="providerID"),
        pytest.param(NODE1, node("node1", labels={EXCLUDE_LABEL: ""}), True, id="excluded"),
        pytest.param(NODE1, node("node1", labels={EXCLUDE_LABEL: "false"}), False, id="included"),
        pytest.param(NODE1, node("node1", ready=False), False, id="not ready"),
        pytest.param(
            NODE1, node("node1", taints=[Taint(key=TO_BE_DELETED_TAINT)]), False, id="tainted"
        ),
        pytest.param(None, NODE1, True, id="added"),
        pytest.param(NODE1, None, True, id="deleted"),
    ],
)
def test_changes_of_nodes_enqueue_services_with_load_balancers(
    old: Node | None, new: Node | None, enqueued: bool
) -> None:
    other = balanced("other", load_balancer_class="a.b/c")
    view = FakeView(balanced(), other, service("plain"))
    keys = list(services_of_changed_node(Change(old, new), view))
    assert keys == ([KEY] if enqueued else [])


def test_a_list_of_names_is_limited() -> None:
    nodes = [node(f"n{number:02}") for number in range(22)]
    assert name_nodes(nodes).endswith("n19 <2 more>]")
    assert select_nodes(reversed(nodes)) == tuple(nodes)
