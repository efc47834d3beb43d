"""Preemption, with cases from upstream's default_preemption tests."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from kcm.api.core_v1 import Pod, PodCondition
from kcm.api.policy_v1 import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from kcm.apimachinery.meta_v1 import LabelSelector, ObjectMeta
from kcm.controllers.scheduler.status import summary, unschedulable
from kcm.helpers.pods import condition_of
from kcm.testing.builders import START
from tests.unit.controllers.scheduler.world import (
    ZONE,
    apply_patches,
    bindings,
    controller,
    message,
    node,
    pod,
    run,
    victims,
)

VIP: dict[str, Any] = {"priority": 100}


def bind_pod(name: str, where: str = "n1", cpu: str = "2", priority: int = 0, **fields: Any) -> Pod:
    return pod(name, node=where, cpu=cpu, priority=priority, phase="Running", **fields)


def budget(app: str, allowed: int) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=app, namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": app})),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )


def build_start_time(minute: int) -> dict[str, datetime]:
    return {"start_time": START + timedelta(minutes=minute)}


def test_the_victim_is_marked_and_deleted_and_the_place_is_kept() -> None:
    plan = run(controller(), node("n1"), bind_pod("low", cpu="4"), pod("vip", cpu="2", **VIP))
    assert bindings(plan) == {}
    assert victims(plan) == ["low"]
    mark = condition_of(apply_patches(plan)["low"].status, "DisruptionTarget")
    assert mark is not None
    assert (mark.status, mark.reason) == ("True", "PreemptionByScheduler")
    assert mark.message == "default-scheduler: preempting to accommodate a higher priority pod"
    assert apply_patches(plan)["vip"].status.nominated_node_name == "n1"
    assert message(plan, "vip") == "0/1 nodes are available: 1 Insufficient cpu."


def test_its_events_tell_of_it() -> None:
    vip = pod("vip", cpu="2", **VIP)
    plan = run(controller(), node("n1"), bind_pod("low", cpu="4"), vip)
    events = {event.reason: event for event in plan.events}
    assert events["Preempted"].about.name == "low"
    assert events["Preempted"].message == f"Preempted by pod {vip.uid} on node n1"
    assert events["FailedScheduling"].about.name == "vip"


def test_equals_are_not_preempted() -> None:
    plan = run(
        controller(), node("n1"), bind_pod("low", cpu="4", priority=100), pod(cpu="2", **VIP)
    )
    assert victims(plan) == []
    assert message(plan, "p") == (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: "
        "1 No preemption victims found for incoming pod."
    )


def test_what_preemption_cannot_help_is_said_by_node() -> None:
    nodes = [node("n1", unschedulable=True), node("n2"), node("n3")]
    plan = run(controller(), *nodes, bind_pod("a", "n2", "4", 100), bind_pod("b", "n3", "4", 100),
               pod(cpu="2", **VIP))  # fmt: skip
    assert message(plan, "p") == (
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. "
        "preemption: 0/3 nodes are available: "
        "1 Preemption is not helpful for scheduling, "
        "2 No preemption victims found for incoming pod."
    )


def test_who_says_never_preempts_nobody() -> None:
    never = pod("p", cpu="2", preemption_policy="Never", **VIP)
    plan = run(controller(), node("n1"), bind_pod("low", cpu="4"), never)
    assert victims(plan) == []
    assert message(plan, "p") == (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "preemption: not eligible due to preemptionPolicy=Never."
    )


def test_no_more_go_than_must_and_the_least_important_first() -> None:
    pods = [bind_pod("a", cpu="1", priority=3), bind_pod("b", cpu="1", priority=1),
            bind_pod("c", cpu="1", priority=2), bind_pod("d", cpu="1", priority=4)]  # fmt: skip
    plan = run(controller(), node("n1"), *pods, pod("vip", cpu="2", **VIP))
    assert sorted(victims(plan)) == ["b", "c"]


def test_of_equals_the_one_that_started_last_goes() -> None:
    pods = [
        bind_pod("old", status=build_start_time(1)),
        bind_pod("new", status=build_start_time(2)),
    ]
    plan = run(controller(), node("n1"), *pods, pod("vip", cpu="2", **VIP))
    assert victims(plan) == ["new"]


def test_a_large_victim_is_spared_when_smaller_ones_do() -> None:
    pods = [
        bind_pod("large", cpu="3", priority=2),
        bind_pod("small", cpu="1", priority=1),
    ]
    plan = run(controller(), node("n1"), *pods, pod("vip", cpu="1", **VIP))
    assert victims(plan) == ["small"]


class TestChoiceOfTheNode:
    def test_fewest_broken_budgets(self) -> None:
        kept = bind_pod("kept", "n1", "4", 1, labels={"app": "kept"})
        plan = run(controller(), node("n1"), node("n2"), kept, bind_pod("free", "n2", "4", 9),
                   budget("kept", 0), pod("vip", cpu="2", **VIP))  # fmt: skip
        assert victims(plan) == ["free"]

    def test_a_budget_of_another_namespace_protects_nobody(self) -> None:
        kept = bind_pod("kept", "n1", "4", 1, labels={"app": "kept"})
        other = budget("kept", 0).with_metadata(namespace="other")
        plan = run(controller(), node("n1"), node("n2"), kept, bind_pod("free", "n2", "4", 9),
                   other, pod("vip", cpu="2", **VIP))  # fmt: skip
        assert victims(plan) == ["kept"]

    def test_a_budget_with_an_empty_selector_protects_nobody(self) -> None:
        kept = bind_pod("kept", "n1", "4", 1, labels={"app": "kept"})
        nobody = budget("kept", 0)
        nobody = nobody.with_spec(nobody.spec.replace(selector=LabelSelector()))
        plan = run(controller(), node("n1"), node("n2"), kept, bind_pod("free", "n2", "4", 9),
                   nobody, pod("vip", cpu="2", **VIP))  # fmt: skip
        assert victims(plan) == ["kept"]

    def test_a_budget_that_allows_it_is_not_broken(self) -> None:
        kept = bind_pod("kept", "n1", "4", 1, labels={"app": "kept"})
        plan = run(controller(), node("n1"), node("n2"), kept, bind_pod("free", "n2", "4", 9),
                   budget("kept", 1), pod("vip", cpu="2", **VIP))  # fmt: skip
        assert victims(plan) == ["kept"]

    def test_where_no_other_way_is_a_budget_is_broken(self) -> None:
        kept = bind_pod("kept", "n1", "4", 1, labels={"app": "kept"})
        plan = run(controller(), node("n1"), kept, budget("kept", 0), pod("vip", cpu="2", **VIP))
        assert victims(plan) == ["kept"]

    def test_on_a_node_those_go_whose_budget_allows_it(self) -> None:
        pods = [
            bind_pod("kept", priority=1, labels={"app": "kept"}),
            bind_pod("free", priority=5),
        ]
        plan = run(controller(), node("n1"), *pods, budget("kept", 0), pod("v", cpu="2", **VIP))
        assert victims(plan) == ["free"]

    def test_the_lowest_highest_priority(self) -> None:
        pods = [
            bind_pod("a", "n1", "4", 5),
            bind_pod("b", "n2", "2", 4),
            bind_pod("c", "n2", "2", 4),
        ]
        plan = run(controller(), node("n1"), node("n2"), *pods, pod("vip", cpu="4", **VIP))
        assert sorted(victims(plan)) == ["b", "c"]

    def test_the_lowest_sum_of_priorities(self) -> None:
        pods = [bind_pod("a", "n1", "2", 5), bind_pod("b", "n1", "2", 4),
                bind_pod("c", "n2", "2", 5), bind_pod("d", "n2", "2", 3)]  # fmt: skip
        plan = run(controller(), node("n1"), node("n2"), *pods, pod("vip", cpu="4", **VIP))
        assert sorted(victims(plan)) == ["c", "d"]

    def test_the_fewest_victims_weigh_more_than_a_sum_below_zero(self) -> None:
        pods = [
            bind_pod("a", "n1", "2", -5),
            bind_pod("b", "n1", "2", -5),
            bind_pod("c", "n2", "4", -5),
        ]
        plan = run(controller(), node("n1"), node("n2"), *pods, pod("vip", cpu="4", **VIP))
        assert victims(plan) == ["c"]

    def test_the_latest_start(self) -> None:
        pods = [bind_pod("old", "n1", "4", status=build_start_time(1)),
                bind_pod("new", "n2", "4", status=build_start_time(2))]  # fmt: skip
        plan = run(controller(), node("n1"), node("n2"), *pods, pod("vip", cpu="2", **VIP))
        assert victims(plan) == ["new"]


def test_anti_affinity_to_a_victim_counts_as_gone_with_it() -> None:
    wanted = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": ZONE}
    far = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [wanted]}}
    low = bind_pod("low", cpu="1", labels={"app": "x"})
    plan = run(controller(), node("n1", zone="a"), low, pod("vip", affinity=far, **VIP))
    assert victims(plan) == ["low"]


def test_while_victims_terminate_no_more_are_chosen() -> None:
    going = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    leaving = bind_pod("leaving", deleting=START, status={"conditions": [going]})
    staying = bind_pod("staying")
    vip = pod("vip", cpu="2", status={"nominated_node_name": "n1"}, **VIP)
    plan = run(controller(), node("n1"), leaving, staying, vip)
    assert victims(plan) == []
    assert message(plan, "vip").endswith(
        "preemption: not eligible due to a terminating pod on the nominated node."
    )
    assert apply_patches(plan)["vip"].status.nominated_node_name == "n1"


def test_less_important_pods_lose_the_place_kept_for_them() -> None:
    loser = pod("loser", cpu="1", priority=10, status={"nominated_node_name": "n1"})
    plan = run(
        controller(), node("n1"), bind_pod("low", cpu="4"), loser, pod("vip", cpu="4", **VIP)
    )
    assert apply_patches(plan)["loser"].status.nominated_node_name is None
    assert apply_patches(plan)["vip"].status.nominated_node_name == "n1"


def test_two_preemptors_of_one_pass_choose_different_victims() -> None:
    nodes = [node("n1"), node("n2")]
    lows = [bind_pod("a", "n1", "4"), bind_pod("b", "n2", "4")]
    vips = [pod("v1", cpu="3", **VIP), pod("v2", cpu="3", **VIP)]
    plan = run(controller(), *nodes, *lows, *vips)
    assert sorted(victims(plan)) == ["a", "b"]
    places = {name: item.status.nominated_node_name for name, item in apply_patches(plan).items()}
    assert {places["v1"], places["v2"]} == {"n1", "n2"}


def test_a_place_that_helps_no_more_is_given_up() -> None:
    vip = pod("vip", cpu="8", status={"nominated_node_name": "n1"}, **VIP)
    plan = run(controller(), node("n1"), vip)
    assert apply_patches(plan)["vip"].status.nominated_node_name is None


def test_reasons_are_sorted_as_upstream_sorts_them() -> None:
    statuses = [unschedulable("x", "b"), unschedulable("x", "b", "a"), unschedulable("x", "c")]
    assert summary(3, statuses) == "0/3 nodes are available: 1 a, 1 c, 2 b."
