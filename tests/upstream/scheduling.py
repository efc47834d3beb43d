"""Cases of the scheduler's plugins: which nodes they reject and how they score them."""

from __future__ import annotations

from typing import Any

from tests.upstream import cases
from tests.upstream.accepted import Differences
from tests.upstream.adapter import scheduling
from tests.upstream.adapter.preemption import Trial
from tests.upstream.cases import Case


def compare_scheduling() -> Differences:
    """Returns where a plugin rejects other nodes, for other reasons, or scores them otherwise."""
    filters: dict[int, str] = {}
    scores: dict[int, str] = {}
    for number, case in cases.read("scheduling"):
        scene, where = scheduling.Scene(case), f"{case['plugin']} {case['t']}"
        if text := "; ".join(_compare_filters(scene, case)):
            filters[number] = f"{where}: {text}"
        if text := "; ".join(_compare_scores(scene, case)):
            scores[number] = f"{where}: {text}"
    return {"scheduling: filters": filters, "scheduling: scores": scores}


def compare_scheduling_volumes() -> Differences:
    """Returns where a pod's volumes keep it from another node, or for other reasons."""
    differing: dict[int, str] = {}
    for number, case in cases.read("scheduling_volumes"):
        find = case.get("op") == "find"
        got = scheduling.find_volumes(case) if find else scheduling.filter_volumes(case)
        if got != case["want"]:
            where = f"{case['plugin']} {case['t']} {case.get('op', '')}"
            differing[number] = f"{where}: wanted {case['want']}, got {got}"
    return {"scheduling: volumes": differing}


def compare_preemption() -> Differences:
    """Returns where other pods are preempted, or others may not be."""
    differing: dict[int, str] = {}
    for number, case in cases.read("preemption"):
        trial, want = Trial(case), case["want"]
        if case["kind"] == "best":
            chosen = trial.choose().get("node")
            texts = [] if chosen in want else [f"wanted one of {want}, got {chosen}"]
        elif case["kind"] == "candidates":
            texts = list(cases.compare(want, trial.candidates()))
        else:
            got = trial.is_eligible() if case["kind"] == "eligible" else trial.choose()
            texts = list(cases.compare(want, got))
        if texts:
            differing[number] = f"{case['kind']} {case['t']}: " + "; ".join(texts)
    return {"preemption": differing}


def _compare_filters(scene: scheduling.Scene, case: Case) -> list[str]:
    want, way = case["want"], case.get("op", "")
    if way == "names":
        wanted = [] if want["status"] else want["names"]
        return list(cases.compare(wanted, scene.names(), "names"))
    wanted = want if way == "filter" else want.get("filter", {})
    got = {name: scene.filter(name) for name in wanted}
    if rejection := want.get("prefilter"):
        names = [one["node"]["metadata"]["name"] for one in case["nodes"]]
        wanted, got = dict.fromkeys(names, rejection), {name: scene.filter(name) for name in names}
    return list(cases.compare(wanted, got))


def _compare_scores(scene: scheduling.Scene, case: Case) -> list[str]:
    want, way = case["want"], case.get("op", "")
    if case["plugin"] == "imagelocality":
        return _compare_rates(scene, want["scores"], "images")
    if way.startswith("score"):
        return _compare_rates(scene, want, way)
    if "scores" not in want:
        return []
    names = list(want["scores"])
    differences = cases.compare(want["scores"], _by_name(names, scene.score(names)), "score")
    if case["plugin"] == "podtopologyspread":
        return list(differences)
    counts = _by_name(names, scene.count(names))
    return [*differences, *cases.compare(want["before"], counts, "count")]


def _compare_rates(scene: scheduling.Scene, wanted: dict[str, int], way: str) -> list[str]:
    return list(cases.compare(wanted, {name: scene.rate(name, way) for name in wanted}))


def _by_name(names: list[str], values: list[int]) -> dict[str, Any]:
    return dict(zip(names, values, strict=True))
