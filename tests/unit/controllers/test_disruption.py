"""Tests which status a PodDisruptionBudget gets from its pods and their owners."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from kcm.api.core_v1 import Pod, PodCondition
from kcm.api.policy_v1 import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from kcm.api.scheme import BUILT_IN, Scheme
from kcm.apimachinery.meta_v1 import (
    Condition,
    KubeObject,
    LabelSelector,
    LabelSelectorRequirement,
)
from kcm.controllers.disruption.controller import DisruptionController, pod_keys
from kcm.kinds.defaults import apply
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import Patch, Plan
from kcm.testing.builders import deployment, node, object_meta, owner_reference, pod, replica_set
from kcm.testing.views import NOW, FakeView

APP = {"app": "web"}
KEY = "default/b"


def budget(
    name: str = "b", selector: Any = APP, status: dict[str, Any] | None = None, **spec: Any
) -> PodDisruptionBudget:
    if isinstance(selector, dict):
        selector = LabelSelector(match_labels=selector)
    fields = {"selector": selector} | spec
    return apply(
        PodDisruptionBudget(
            metadata=object_meta(
                "PodDisruptionBudget", name, "default", overrides={"generation": 3}
            ),
            spec=PodDisruptionBudgetSpec(**fields),
            status=PodDisruptionBudgetStatus(**(status or {})),
        )
    )


def sync(*objects: KubeObject, key: str = KEY) -> Plan:
    controller = DisruptionController()
    return controller.reconcile(key, FakeView(*objects, controller=controller))


def status_of(plan: Plan) -> PodDisruptionBudgetStatus:
    (write,) = plan.writes
    assert isinstance(write, Patch)
    assert write.status
    new = write.change(write.old)
    assert isinstance(new, PodDisruptionBudget)
    return new.status


def events_of(plan: Plan) -> Iterator[tuple[str, str, str]]:
    return ((event.type, event.reason, event.message) for event in plan.events)


def web(count: int, ready: int, owner: KubeObject | None = None) -> list[Pod]:
    return [pod(f"w{i}", labels=APP, owner=owner, ready=i < ready) for i in range(count)]


RS = replica_set("web", replicas=10)


@pytest.mark.parametrize(
    ("spec", "ready", "expected", "desired", "allowed"),
    [
        ({"min_available": 3}, 4, 4, 3, 1),
        ({"min_available": 3}, 3, 4, 3, 0),
        ({"min_available": 3}, 1, 4, 3, 0),
        ({"min_available": 0}, 4, 4, 0, 4),
        ({"min_available": "30%"}, 4, 10, 3, 1),
        ({"min_available": "35%"}, 4, 10, 4, 0),  # rounded up
        ({"min_available": "0%"}, 4, 10, 0, 4),
        ({"min_available": "100%"}, 4, 10, 10, 0),
        ({"max_unavailable": 7}, 4, 10, 3, 1),
        ({"max_unavailable": "61%"}, 4, 10, 3, 1),  # rounded up
        ({"max_unavailable": 0}, 4, 10, 10, 0),
        ({"max_unavailable": 100}, 4, 10, 0, 4),
        ({}, 4, 0, 0, 0),
    ],
)
def test_the_numbers_of_a_budget(
    spec: dict[str, Any], ready: int, expected: int, desired: int, allowed: int
) -> None:
    status = status_of(sync(budget(**spec), RS, *web(4, ready, RS)))
    assert (
        status.expected_pods,
        status.current_healthy,
        status.desired_healthy,
        status.disruptions_allowed,
        status.observed_generation,
        status.disrupted_pods,
    ) == (expected, ready, desired, allowed, 3, None)
    (condition,) = status.conditions or []
    assert (condition.type, condition.status, condition.reason, condition.observed_generation) == (
        "DisruptionAllowed",
        "True" if allowed else "False",
        "SufficientPods" if allowed else "InsufficientPods",
        3,
    )


def test_a_status_that_is_right_is_not_written_again() -> None:
    stored_budget = budget(min_available=1)
    status = status_of(sync(stored_budget, *web(2, 2)))
    plan = sync(stored_budget.with_status(status), *web(2, 2))
    assert (plan.writes, plan.requeue_after) == ([], None)


def test_the_time_of_a_condition_stays_until_its_word_changes() -> None:
    since = NOW - timedelta(hours=1)
    old = Condition(type="DisruptionAllowed", status="True", last_transition_time=since)
    for ready, expected in ((2, since), (1, NOW)):
        stored_budget = budget(min_available=1, status={"conditions": [old]})
        (condition,) = status_of(sync(stored_budget, *web(2, ready))).conditions or []
        assert condition.last_transition_time == expected


def test_a_replica_set_of_a_deployment_asks_the_deployment() -> None:
    owner = deployment("web", replicas=6)
    old, new = (replica_set(n, replicas=r, owner=owner) for n, r in (("web", 2), ("web-2", 5)))
    pods = [pod(n, labels=APP, owner=o, ready=True) for n, o in (("a", old), ("b", new))]
    status = status_of(sync(budget(max_unavailable=5), owner, old, new, *pods))
    assert (status.expected_pods, status.desired_healthy) == (6, 1)


def test_several_owners_add_up() -> None:
    other = replica_set("other", replicas=4, labels=APP)
    pods = [*web(3, 3, RS), pod("x", labels=APP, owner=other)]
    assert status_of(sync(budget(max_unavailable=1), RS, other, *pods)).expected_pods == 14


@pytest.mark.parametrize("case", ["gone", "another", "another group"])
def test_a_replica_set_whose_deployment_is_none_speaks_for_itself(case: str) -> None:
    """Upstream's last finder, getScaleController, then reads the scale of the ReplicaSet itself."""
    over = deployment("web", replicas=6)
    reference = owner_reference(over, controller=True)
    if case == "another group":
        reference = reference.replace(api_version="example.com/v1")
    owned = RS.with_metadata(owner_references=[reference])
    present = {"gone": [], "another": [over.with_metadata(uid="x")], "another group": [over]}
    pod_disruption_budget_status = status_of(
        sync(budget(max_unavailable=1), owned, *present[case], *web(2, 2, RS))
    )
    assert pod_disruption_budget_status.expected_pods == 10


@pytest.mark.parametrize("case", ["gone", "another", "unscalable", "unknown"])
def test_pods_whose_owner_has_no_scale_forbid_everything(case: str) -> None:
    owned = web(2, 2, RS)
    present: list[KubeObject] = [RS]
    message = 'found no controllers for pod "w0"'
    if case == "gone":
        present = []
    elif case == "another":
        present = [RS.with_metadata(uid="another")]
    else:
        kind = "Node" if case == "unscalable" else "Robot"
        reference = owner_reference(node("n1"), controller=True).replace(kind=kind)
        owned = [p.with_metadata(owner_references=[reference]) for p in owned]
        message = "nodes does not implement the scale subresource"
        if case == "unknown":
            message = 'no matches for kind "Robot" in version "v1"'
    before = {"disruptions_allowed": 5, "current_healthy": 7}
    plan = sync(budget(max_unavailable=1, status=before), *present, *owned)
    status = status_of(plan)
    assert (status.disruptions_allowed, status.current_healthy) == (0, 7)
    (condition,) = status.conditions or []
    assert (condition.status, condition.reason, condition.message) == (
        "False",
        "SyncFailed",
        message,
    )
    assert list(events_of(plan)) == [
        (
            "Warning",
            "CalculateExpectedPodCountFailed",
            f"Failed to calculate the number of expected pods: {message}",
        )
    ]
    assert plan.error is None


def test_unreadable_numbers_forbid_everything() -> None:
    plan = sync(budget(min_available="many"), RS, *web(1, 1, RS))
    (condition,) = status_of(plan).conditions or []
    assert condition.reason == "SyncFailed"
    assert "many" in condition.message


def test_unreadable_selectors_forbid_everything() -> None:
    broken = LabelSelector(match_expressions=[LabelSelectorRequirement(key="a", operator="Near")])
    plan = sync(budget(selector=broken, min_available=1))
    assert status_of(plan).disruptions_allowed == 0
    assert [(type, reason) for type, reason, _ in events_of(plan)] == [("Warning", "NoPods")]


def test_a_budget_without_pods_says_so() -> None:
    plan = sync(budget(min_available=1), pod("other"))
    assert list(events_of(plan)) == [("Normal", "NoPods", "No matching pods found")]
    assert status_of(plan).disruptions_allowed == 0


def test_pods_without_an_owner_are_told_of_when_owners_count() -> None:
    plan = sync(budget(max_unavailable=1), *web(2, 2))
    ((type, reason, message),) = events_of(plan)
    assert (type, reason) == ("Warning", "UnmanagedPods")
    assert (
        "(selector: &LabelSelector{MatchLabels:map[string]string{app: web,},"
        "MatchExpressions:[]LabelSelectorRequirement{},})" in message
    )
    assert list(events_of(sync(budget(min_available=1), *web(2, 2)))) == []


def test_pods_of_two_budgets_are_told_of() -> None:
    plan = sync(budget(min_available=1), budget("c", min_available=1), *web(1, 1))
    assert list(events_of(plan)) == [
        (
            "Warning",
            "MultiplePodDisruptionBudgets",
            'Pod "default"/"w0" matches multiple PodDisruptionBudgets.  Chose "b" arbitrarily.',
        )
    ]


# --- evictions under way


def test_evicted_pods_do_not_count_and_are_looked_at_again() -> None:
    said = {
        "w0": NOW - timedelta(seconds=30),
        "w1": NOW - timedelta(seconds=121),  # overdue
        "w2": NOW - timedelta(seconds=10),  # being deleted
        "gone": NOW,
    }
    pods = web(5, 5)
    pods[2] = pod("w2", labels=APP, ready=True, deleting=NOW)
    plan = sync(budget(min_available=1, status={"disrupted_pods": said}), *pods)
    status = status_of(plan)
    assert status.disrupted_pods == {"w0": said["w0"]}
    assert (status.current_healthy, status.disruptions_allowed) == (3, 2)
    assert plan.requeue_after == pytest.approx(90, abs=0.01)
    assert list(events_of(plan)) == [
        (
            "Warning",
            "NotDeleted",
            "Pod was expected by PDB default/b to be deleted but it wasn't",
        )
    ]


def test_an_eviction_between_look_and_write_still_counts() -> None:
    stored_budget = budget(min_available=1)
    (write,) = sync(stored_budget, *web(3, 3)).writes
    assert isinstance(write, Patch)
    evicted = stored_budget.with_status(stored_budget.status.replace(disrupted_pods={"w0": NOW}))
    new = write.change(evicted)
    assert isinstance(new, PodDisruptionBudget)
    assert new.status.disrupted_pods == {"w0": NOW}
    assert new.status.disruptions_allowed == 1


def test_a_budget_changed_between_look_and_write_is_left_to_the_next_sync() -> None:
    stored_budget = budget(min_available=1)
    (write,) = sync(stored_budget, *web(3, 3)).writes
    assert isinstance(write, Patch)
    newer = stored_budget.with_metadata(generation=4)
    assert write.change(newer) is newer


def test_budgets_that_are_gone_need_nothing() -> None:
    assert sync().writes == []


# --- stale DisruptionTarget conditions


def build_disruption_target(
    age: float, reason: str = "EvictionByEvictionAPI", **fields: Any
) -> Pod:
    since = NOW - timedelta(seconds=age)
    condition = PodCondition(
        type="DisruptionTarget",
        status=fields.pop("word", "True"),
        reason=reason,
        message="m",
        last_transition_time=since,
    )
    return pod("p", status={"conditions": [condition]}, **fields)


@pytest.mark.parametrize(
    ("new_pod", "left"),
    [
        (build_disruption_target(0), 120.0),
        (build_disruption_target(119), 1.0),
        (build_disruption_target(120), 0.0),
        (build_disruption_target(500), 0.0),
        (build_disruption_target(500, word="False"), None),
        (build_disruption_target(500, "TerminationByKubelet"), None),
        (build_disruption_target(500, deleting=NOW), None),
        (build_disruption_target(500, phase="Failed"), None),
        (pod("p"), None),
    ],
)
def test_a_target_that_is_not_hit_in_two_minutes_is_none(new_pod: Pod, left: float | None) -> None:
    plan = sync(new_pod, key="pod:default/p")
    marked = list(pod_keys(Change(None, new_pod), FakeView()))
    assert marked == ([] if left is None else ["pod:default/p"])
    if not left:
        assert plan.requeue_after is None
        assert bool(plan.writes) is (left == 0)
    else:
        assert (plan.requeue_after, plan.writes) == (left, [])


def test_a_stale_target_becomes_false() -> None:
    pod = build_disruption_target(500)
    (write,) = sync(pod, key="pod:default/p").writes
    assert isinstance(write, Patch)
    new = write.change(pod)
    assert isinstance(new, Pod)
    (condition,) = new.status.conditions or []
    assert condition == PodCondition(
        type="DisruptionTarget", status="False", last_transition_time=NOW
    )
    assert write.change(new) is new
    assert sync(key="pod:default/p").writes == []


def test_a_target_that_was_hit_meanwhile_needs_no_look() -> None:
    marked = build_disruption_target(0)
    gone = build_disruption_target(0, deleting=NOW).with_metadata(resource_version="7")
    late = build_disruption_target(0, deleting=NOW).with_metadata(resource_version="0")
    assert list(pod_keys(Change(None, marked), FakeView(gone))) == []
    assert list(pod_keys(Change(None, marked), FakeView(late))) == ["pod:default/p"]


# --- keys


def test_a_pod_touches_the_budgets_it_matches_and_matched() -> None:
    other = budget("other", selector={"app": "other"})
    view = FakeView(budget(), other, budget("none", selector=None), budget("all", selector={}))
    before, after = pod("p", labels=APP), pod("p", labels={"app": "other"})
    assert set(pod_keys(Change(before, after), view)) == {KEY, "default/other", "default/all"}
    assert set(pod_keys(Change(after, None), view)) == {"default/other", "default/all"}


def test_every_kind_that_can_be_scaled_is_read() -> None:
    from kcm.reconcile.caches import list_declared_models

    scalable = {resource.model for resource in BUILT_IN.resources() if resource.scale}
    assert scalable <= set(list_declared_models(DisruptionController(), Scheme()))
