"""Tests which nodes get a pod of a DaemonSet, and how the pod is bound to its node."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kcm.api.apps_v1 import (
    DaemonSet,
    DaemonSetUpdateStrategy,
)
from kcm.api.core_v1 import Toleration
from kcm.api.core_v1.affinity import PodAffinity
from kcm.controllers.daemonset.backoff import POLICY, FailedPodsBackoff
from kcm.controllers.daemonset.controller import find_affected_daemon_sets
from kcm.controllers.daemonset.daemons import max_surge, max_unavailable
from kcm.controllers.daemonset.placement import (
    POD_GENERATION,
    TEMPLATE_GENERATION,
    Fitness,
    Placement,
    new_pod,
    node_of,
    tolerations_of,
)
from kcm.helpers.history import REVISION_HASH
from kcm.reconcile.contract import Change
from kcm.testing import builders
from kcm.testing.views import NOW, FakeView
from tests.set_builders import daemon_set, template
from tests.unit.controllers.daemonsets import LABELS, affinity, build_rolling_update, of, taint

# --- placement


@pytest.mark.parametrize(
    ("daemon_set", "node", "expected"),
    [
        (of(), {}, (True, True)),
        (of(node_name="n1"), {}, (True, True)),
        (of(node_name="n2"), {}, (False, False)),
        (of(node_selector={"disk": "ssd"}), {}, (False, False)),
        (of(node_selector={"disk": "ssd"}), {"labels": {"disk": "ssd"}}, (True, True)),
        (of(affinity=affinity("n1", "n2")), {}, (True, True)),
        (of(affinity=affinity("n2")), {}, (False, False)),
        (of(), {"taints": [taint("NoSchedule")]}, (False, True)),
        (of(), {"taints": [taint("NoExecute")]}, (False, False)),
        (of(), {"taints": [taint("PreferNoSchedule")]}, (True, True)),
        (
            of(tolerations=[Toleration(operator="Exists")]),
            {"taints": [taint("NoExecute"), taint("NoSchedule")]},
            (True, True),
        ),
        (of(), {"ready": False}, (True, True)),
        *(
            (of(), {"taints": [taint(effect, f"node.kubernetes.io/{key}")]}, (True, True))
            for key, effect in [
                ("not-ready", "NoExecute"),
                ("unreachable", "NoExecute"),
                ("disk-pressure", "NoSchedule"),
                ("memory-pressure", "NoSchedule"),
                ("pid-pressure", "NoSchedule"),
                ("unschedulable", "NoSchedule"),
            ]
        ),
        (
            of(),
            {"taints": [taint("NoSchedule", "node.kubernetes.io/network-unavailable")]},
            (False, True),
        ),
        (
            of(host_network=True),
            {"taints": [taint("NoSchedule", "node.kubernetes.io/network-unavailable")]},
            (True, True),
        ),
    ],
)
def test_a_node_gets_a_pod_or_may_keep_one(
    daemon_set: DaemonSet, node: dict[str, Any], expected: tuple[bool, bool]
) -> None:
    assert Placement.of(daemon_set).judge(builders.node("n1", **node)) == Fitness(*expected)


def test_tolerations_of_the_template_stay_and_none_comes_twice() -> None:
    mine = Toleration(key="x", operator="Exists")
    short = Toleration(
        key="node.kubernetes.io/not-ready",
        operator="Exists",
        effect="NoExecute",
        toleration_seconds=5,
    )
    tolerations = tolerations_of(of(tolerations=[mine, short]).spec.template.spec)
    assert tolerations[0] == mine
    assert len(tolerations) == 7
    assert all(toleration.toleration_seconds is None for toleration in tolerations)


def test_a_pod_is_tied_to_its_node_and_bears_its_revision() -> None:
    wish = {"weight": 1, "preference": {}}
    given = affinity("n1", "n2") | {"podAffinity": {}}
    given["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = [wish]
    owner = daemon_set(
        template=template(LABELS, affinity=given),
        metadata={"annotations": {TEMPLATE_GENERATION: "3"}},
    )
    pod = new_pod(owner, "n2", "abc")
    assert node_of(pod) == "n2"
    assert pod.spec.node_name is None
    assert pod.labels == {**LABELS, REVISION_HASH: "abc", POD_GENERATION: "3"}
    assert pod.spec.affinity is not None
    assert pod.spec.affinity.pod_affinity == PodAffinity()
    of_nodes = pod.spec.affinity.node_affinity
    assert of_nodes is not None
    assert of_nodes.preferred_during_scheduling_ignored_during_execution


def test_a_pod_without_a_node_of_its_own_is_of_none() -> None:
    assert node_of(builders.pod()) == ""
    assert node_of(builders.pod(affinity=affinity("a", "b"))) == ""
    assert node_of(builders.pod(node="n1", affinity=affinity("n2"))) == "n1"


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (build_rolling_update(1), (1, 0)),
        (build_rolling_update("10%"), (2, 0)),
        (build_rolling_update(0, "25%"), (0, 3)),
        (build_rolling_update(0, 0), (1, 0)),
        ({"update_strategy": DaemonSetUpdateStrategy(type="OnDelete")}, (1, 0)),
    ],
)
def test_percentages_of_eleven_nodes_are_rounded_up(
    strategy: dict[str, Any], expected: tuple[int, int]
) -> None:
    owner = daemon_set(**strategy)
    assert (max_unavailable(owner, 11), max_surge(owner, 11)) == expected


def test_a_node_wakes_those_that_judge_it_anew() -> None:
    ssd = daemon_set("ssd", template=template({"app": "ssd"}, node_selector={"disk": "ssd"}))
    other = daemon_set("other")
    view = FakeView(ssd, other)
    plain, disk = builders.node("n1"), builders.node("n1", labels={"disk": "ssd"})
    assert list(find_affected_daemon_sets(Change(plain, disk), view)) == ["default/ssd"]
    assert list(find_affected_daemon_sets(Change(plain, plain), view)) == []
    for came_or_went in (Change(None, plain), Change(plain, None)):
        assert list(find_affected_daemon_sets(came_or_went, view)) == ["default/other"]
    for came_or_went in (Change(None, disk), Change(disk, None)):
        assert len(list(find_affected_daemon_sets(came_or_went, view))) == 2


def test_a_node_wakes_those_that_have_a_pod_there_though_it_is_not_for_them() -> None:
    """Upstream's TestAddNode, and the change of 1.34: the pod there may have to be deleted."""
    ssd = daemon_set("ssd", template=template({"app": "ssd"}, node_selector={"disk": "ssd"}))
    astray = builders.pod("ssd-1", owner=ssd, node="n1")
    plain = builders.node("n1")
    assert list(find_affected_daemon_sets(Change(None, plain), FakeView(ssd))) == []
    assert list(find_affected_daemon_sets(Change(None, plain), FakeView(ssd, astray))) == [
        "default/ssd"
    ]


def test_failed_pods_wait_twice_as_long_each_time() -> None:
    backoff, now, waits = FailedPodsBackoff({}, NOW), NOW, []
    assert backoff.wait("n1") == 0
    for _ in range(12):
        backoff.next("n1")
        waits.append(backoff.wait("n1"))
        now += timedelta(seconds=waits[-1])
        backoff = FailedPodsBackoff(backoff.to_memory(), now)
        assert backoff.wait("n1") == 0
    assert waits[:4] == [1, 2, 4, 8]
    assert waits[-1] == POLICY.maximum
    assert (
        FailedPodsBackoff(
            backoff.to_memory(), now + timedelta(seconds=2 * POLICY.maximum + 1)
        ).to_memory()
        == {}
    )
