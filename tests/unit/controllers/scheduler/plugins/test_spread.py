"""Topology spread, with cases from upstream's podtopologyspread filtering and scoring tests."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kcm.api.core_v1 import Node, Pod
from kcm.apimachinery.labels import Requirement, Selector
from kcm.controllers.scheduler.plugins.spread import SoftSpread, constraints_of, system_constraints
from tests.unit.controllers.scheduler.world import HOST, ZONE, Scene, node, pod, taint

TOO_MANY = ("node(s) didn't match pod topology spread constraints",)
NO_LABEL = ("node(s) didn't match pod topology spread constraints (missing required label)",)


def rule(key: str = ZONE, skew: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        **fields,
    }


def build_spread_pod(name: str, *rules: dict[str, Any], **fields: Any) -> Pod:
    fields.setdefault("labels", {"app": "web"})
    return pod(name, topology_spread_constraints=list(rules), **fields)


def web(name: str, where: str, **fields: Any) -> Pod:
    return pod(name, labels={"app": "web"}, node=where, **fields)


def nodes(**zones: str) -> list[Node]:
    return [node(name, zone=zone) for name, zone in zones.items()]


TWO_ZONES = {"n1": "a", "n2": "a", "n3": "b"}


class TestDoNotSchedule:
    def test_skew_is_counted_against_the_emptiest_place(self) -> None:
        scene = Scene(*nodes(**TWO_ZONES), web("a", "n1"))
        assert scene.refusals(build_spread_pod("p", rule())) == {"n1": TOO_MANY, "n2": TOO_MANY}
        assert scene.refusals(build_spread_pod("q", rule(skew=2))) == {}

    def test_a_pod_that_its_own_rule_does_not_mean_does_not_count(self) -> None:
        scene = Scene(*nodes(**TWO_ZONES), web("a", "n1"))
        assert scene.refusals(build_spread_pod("p", rule(), labels={"app": "db"})) == {}

    def test_a_node_without_the_label_is_refused(self) -> None:
        scene = Scene(*nodes(n1="a", n2=""), web("a", "n1"))
        assert scene.refusals(build_spread_pod("p", rule())) == {"n2": NO_LABEL}

    def test_terminating_pods_and_those_of_other_namespaces_do_not_count(self) -> None:
        from kcm.testing.builders import START

        gone = web("a", "n1", deleting=START)
        other = web("b", "n1", namespace="other")
        assert Scene(*nodes(**TWO_ZONES), gone, other).refusals(build_spread_pod("p", rule())) == {}

    def test_two_rules_hold_both(self) -> None:
        there = [web("a", "n1"), web("b", "n3")]
        scene = Scene(*nodes(**TWO_ZONES), *there)
        assert scene.refusals(build_spread_pod("p", rule(), rule(HOST))) == {
            "n1": TOO_MANY,
            "n3": TOO_MANY,
        }

    @pytest.mark.parametrize(("minimum", "refused"), [(2, False), (3, True), (None, False)])
    def test_with_too_few_places_the_emptiest_counts_as_empty(
        self, minimum: int | None, refused: bool
    ) -> None:
        scene = Scene(*nodes(n1="a", n2="b"), web("a", "n1"), web("b", "n2"))
        reasons = scene.refusals(build_spread_pod("p", rule(minDomains=minimum)))
        assert (reasons == {"n1": TOO_MANY, "n2": TOO_MANY}) is refused

    def test_match_label_keys_narrow_the_selector_to_the_pods_own_values(self) -> None:
        old = pod("old", labels={"app": "web", "hash": "1"}, node="n1")
        new = build_spread_pod(
            "p", rule(matchLabelKeys=["hash"]), labels={"app": "web", "hash": "2"}
        )
        assert Scene(*nodes(**TWO_ZONES), old).refusals(new) == {}

    @pytest.mark.parametrize(("policy", "refused"), [("Honor", False), ("Ignore", True)])
    def test_node_affinity_says_which_nodes_take_part(self, policy: str, refused: bool) -> None:
        scene = Scene(*nodes(**TWO_ZONES), web("a", "n1"))
        what = build_spread_pod("p", rule(nodeAffinityPolicy=policy), node_selector={ZONE: "a"})
        assert ("n1" in scene.refusals(what)) is refused

    @pytest.mark.parametrize(("policy", "refused"), [("Honor", False), ("Ignore", True)])
    def test_taints_say_which_nodes_take_part(self, policy: str, refused: bool) -> None:
        scene = Scene(node("n1", zone="a"), node("n2", zone="b", taints=[taint()]), web("a", "n1"))
        what = build_spread_pod("p", rule(nodeTaintsPolicy=policy))
        assert ("n1" in scene.refusals(what)) is refused

    def test_a_batch_is_spread_evenly(self) -> None:
        scene = Scene(*nodes(n1="a", n2="a", n3="b", n4="c"))
        zones = {"n1": "a", "n2": "a", "n3": "b", "n4": "c"}
        placed = Counter(zones[scene.place(build_spread_pod(f"p{n}", rule()))] for n in range(9))
        assert placed == {"a": 3, "b": 3, "c": 3}


class TestScheduleAnyway:
    def test_prefers_the_place_with_the_fewest(self) -> None:
        scene = Scene(*nodes(**TWO_ZONES), web("a", "n1"))
        scores = scene.scores(build_spread_pod("p", rule(whenUnsatisfiable="ScheduleAnyway")))
        assert scores["n3"] > scores["n2"]

    def test_scores_as_upstream_for_four_nodes(self) -> None:
        """There are 4, 3, 2 and 1 pods on the nodes; raw scores are these counts times ln(6)."""
        four = nodes(**{f"n{n}": "" for n in range(4)})
        there = [web(f"w{n}-{i}", f"n{n}") for n in range(4) for i in range(4 - n)]
        scene = Scene(*four, *there)
        info = scene.info(build_spread_pod("p", rule(HOST, whenUnsatisfiable="ScheduleAnyway")))
        template = scene.templates.of(info)
        assert template.soft_spread is not None
        assert template.soft_spread.scores(range(len(scene.snapshot.nodes))) == [28, 57, 71, 100]

    def test_nodes_without_the_label_get_nothing(self) -> None:
        scene = Scene(*nodes(n1="a", n2=""))
        info = scene.info(build_spread_pod("p", rule(whenUnsatisfiable="ScheduleAnyway")))
        soft = scene.templates.of(info).soft_spread
        assert soft is not None
        assert soft.scores(range(len(scene.snapshot.nodes))) == [100, 0]

    def test_the_systems_defaults_spread_over_hosts_without_zones(self) -> None:
        scene = Scene(*nodes(n1="", n2=""), web("a", "n1"))
        info = scene.info(pod("p", labels={"app": "web"}))
        selector = Selector((Requirement("app", "=", ("web",)),))
        filters = scene.templates.of(info).filters
        soft = SoftSpread(info, system_constraints(selector), scene.snapshot, filters, system=True)
        assert soft.scores(range(len(scene.snapshot.nodes))) == [66, 100]

    def test_no_selector_no_defaults(self) -> None:
        assert system_constraints(None) == []
        assert system_constraints(Selector.everything()) == []

    def test_constraints_are_of_one_kind_each(self) -> None:
        scene = Scene()
        info = scene.info(
            build_spread_pod("p", rule(), rule(HOST, whenUnsatisfiable="ScheduleAnyway"))
        )
        assert [c.key for c in constraints_of(info, "DoNotSchedule")] == [ZONE]
        assert [c.key for c in constraints_of(info, "ScheduleAnyway")] == [HOST]
