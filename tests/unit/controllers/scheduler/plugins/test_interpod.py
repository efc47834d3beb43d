"""Inter-pod affinity, with cases from upstream's interpodaffinity filtering and scoring tests."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import Node
from kcm.testing.builders import namespace
from tests.unit.controllers.scheduler.world import HOST, ZONE, Scene, node, pod

NOT_NEAR = ("node(s) didn't match pod affinity rules",)
TOO_NEAR = ("node(s) didn't match pod anti-affinity rules",)
UNWANTED = ("node(s) didn't satisfy existing pods anti-affinity rules",)


def term(app: str = "db", key: str = ZONE, **fields: Any) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **fields}


def build_affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def build_anti_affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def build_preference(kind: str, weight: int, wanted: dict[str, Any]) -> dict[str, Any]:
    wish = {"weight": weight, "podAffinityTerm": wanted}
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}


def three() -> list[Node]:
    return [node("n1", zone="a"), node("n2", zone="a"), node("n3", zone="b")]


DB = pod("db", labels={"app": "db"}, node="n1")


class TestAffinity:
    def test_wants_a_matching_pod_in_the_same_place(self) -> None:
        scene = Scene(*three(), DB)
        assert scene.refusals(pod(affinity=build_affinity(term()))) == {"n3": NOT_NEAR}
        assert scene.refusals(pod("q", affinity=build_affinity(term(key=HOST)))) == {
            "n2": NOT_NEAR,
            "n3": NOT_NEAR,
        }

    def test_all_terms_must_hold_of_one_pod(self) -> None:
        other = pod("web", labels={"app": "web"}, node="n1")
        scene = Scene(*three(), DB, other)
        what = pod(affinity=build_affinity(term("db"), term("web")))
        assert scene.refusals(what).keys() == {"n1", "n2", "n3"}

    def test_the_first_of_its_kind_goes_anywhere_with_the_label(self) -> None:
        scene = Scene(*three(), node("n4"))
        what = pod(labels={"app": "db"}, affinity=build_affinity(term()))
        assert scene.refusals(what) == {"n4": NOT_NEAR}
        assert scene.place(what) in ("n1", "n2", "n3")

    def test_the_second_goes_to_the_first(self) -> None:
        scene = Scene(*three())
        first = scene.place(pod("a", labels={"app": "db"}, affinity=build_affinity(term(key=HOST))))
        second = scene.place(
            pod("b", labels={"app": "db"}, affinity=build_affinity(term(key=HOST)))
        )
        assert first == second

    @pytest.mark.parametrize(
        ("where", "fits"),
        [
            ({}, False),
            ({"namespaces": ["other"]}, True),
            ({"namespaces": ["default"]}, False),
            ({"namespaceSelector": {}}, True),
            ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, True),
            ({"namespaceSelector": {"matchLabels": {"team": "y"}}}, False),
            ({"namespaces": ["third"], "namespaceSelector": {"matchLabels": {"team": "x"}}}, True),
        ],
    )
    def test_namespaces_are_named_or_selected(self, where: dict[str, Any], fits: bool) -> None:
        scene = Scene()
        there = pod("db", namespace="other", labels={"app": "db"}, node="n1")
        spaces = [namespace("default"), namespace("other", labels={"team": "x"})]
        scene.snapshot.update(2, three(), [there], spaces)
        refused = scene.refusals(pod(affinity=build_affinity(term(**where))))
        assert ("n1" not in refused) is fits


class TestAntiAffinity:
    def test_keeps_away_from_matching_pods(self) -> None:
        scene = Scene(*three(), DB)
        assert scene.refusals(pod(affinity=build_anti_affinity(term()))) == {
            "n1": TOO_NEAR,
            "n2": TOO_NEAR,
        }

    def test_one_term_is_enough(self) -> None:
        scene = Scene(*three(), DB)
        what = pod(affinity=build_anti_affinity(term("web"), term("db", HOST)))
        assert scene.refusals(what) == {"n1": TOO_NEAR}

    def test_nodes_without_the_label_are_no_place(self) -> None:
        scene = Scene(node("n1"), node("n2"), DB)
        assert scene.refusals(pod(affinity=build_anti_affinity(term()))) == {}

    def test_pods_that_are_there_keep_others_away(self) -> None:
        hermit = pod("hermit", node="n1", affinity=build_anti_affinity(term("web")))
        scene = Scene(*three(), hermit)
        assert scene.refusals(pod("p", labels={"app": "web"})) == {
            "n1": UNWANTED,
            "n2": UNWANTED,
        }
        assert scene.refusals(pod("q", labels={"app": "db"})) == {}

    def test_those_of_other_namespaces_do_not(self) -> None:
        hermit = pod(
            "hermit", namespace="other", node="n1", affinity=build_anti_affinity(term("web"))
        )
        assert Scene(*three(), hermit).refusals(pod(labels={"app": "web"})) == {}

    def test_a_batch_keeps_apart(self) -> None:
        scene = Scene(*three())
        places = [
            scene.place(
                pod(f"p{n}", labels={"app": "db"}, affinity=build_anti_affinity(term(key=HOST)))
            )
            for n in range(4)
        ]
        assert sorted(places) == ["", "n1", "n2", "n3"]

    def test_a_template_without_terms_learns_of_the_first_hermit(self) -> None:
        scene = Scene(node("n1", zone="a"), node("n2", zone="b"))
        assert scene.refusals(pod("w1", labels={"app": "web"})) == {}
        hermit = scene.place(pod("hermit", affinity=build_anti_affinity(term("web"))))
        assert scene.refusals(pod("w1", labels={"app": "web"})) == {hermit: UNWANTED}


class TestPreferences:
    @pytest.mark.parametrize(("kind", "sign"), [("podAffinity", 1), ("podAntiAffinity", -1)])
    def test_of_the_pod_count(self, kind: str, sign: int) -> None:
        scores = Scene(*three(), DB).scores(pod(affinity=build_preference(kind, 7, term())))
        plain = Scene(*three(), DB).scores(pod())
        gained = {name: scores[name] - plain[name] for name in scores}
        better, worse = ("n2", "n3") if sign > 0 else ("n3", "n2")
        assert gained[better] - gained[worse] == 200

    def test_of_pods_that_are_there_count_too(self) -> None:
        fond = pod("fond", node="n1", affinity=build_preference("podAffinity", 5, term("web")))
        scores = Scene(*three(), fond).scores(pod(labels={"app": "web"}))
        assert scores["n2"] - scores["n3"] == 200

    def test_what_is_required_of_this_pod_is_a_wish_of_weight_one(self) -> None:
        bound = pod("fond", node="n1", affinity=build_affinity(term("web")))
        scores = Scene(*three(), bound).scores(pod(labels={"app": "web"}))
        assert scores["n2"] - scores["n3"] == 200
