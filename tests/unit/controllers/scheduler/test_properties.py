"""For any nodes and pods: no node is over capacity, and all required rules hold."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kcm.api.core_v1 import Node, Pod, Toleration
from kcm.controllers.scheduler.plugins.taints import find_untolerated
from kcm.controllers.scheduler.resources import requests_of
from kcm.helpers.nodeaffinity import NodeRule
from kcm.reconcile.plan import Bind
from tests.unit.controllers.scheduler.world import (
    HOST,
    ZONE,
    build_container,
    controller,
    node,
    pod,
    run,
    taint,
)

ZONES = ("a", "b", "c")


def _build_anti_affinity(app: str, key: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _even(app: str) -> list[dict[str, Any]]:
    return [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": app}},
        }
    ]


@st.composite
def nodes(draw: st.DrawFn) -> list[Node]:
    size = draw(st.integers(1, 6))
    return [
        node(
            f"n{n}",
            cpu=str(draw(st.integers(0, 4))),
            zone=draw(st.sampled_from(ZONES)),
            pods=draw(st.integers(0, 6)),
            taints=[taint()] if draw(st.booleans()) else [],
        )
        for n in range(size)
    ]


@st.composite
def pods(draw: st.DrawFn) -> list[Pod]:
    generated = []
    for n in range(draw(st.integers(1, 14))):
        app = draw(st.sampled_from(("x", "y")))
        fields: dict[str, Any] = {}
        kind = draw(st.sampled_from(("plain", "far", "even", "zone", "port", "tolerant")))
        ports = (80,) if kind == "port" else ()
        if kind == "far":
            fields["affinity"] = _build_anti_affinity(app, draw(st.sampled_from((HOST, ZONE))))
        elif kind == "even":
            fields["topology_spread_constraints"] = _even(app)
        elif kind == "zone":
            fields["node_selector"] = {ZONE: draw(st.sampled_from(ZONES))}
        elif kind == "tolerant":
            fields["tolerations"] = [Toleration(operator="Exists")]
        cpu = f"{draw(st.integers(0, 6)) * 500}m"
        fields["priority"] = draw(st.integers(0, 2))
        generated.append(
            pod(
                f"p{n}",
                labels={"app": app},
                containers=[build_container(*ports, cpu=cpu)],
                **fields,
            )
        )
    return generated


@settings(max_examples=150, deadline=None)
@given(nodes(), pods())
def test_every_placement_is_allowed(where: list[Node], what: list[Pod]) -> None:
    plan = run(controller(), *where, *what)
    placed = [w.new for w in plan.writes if isinstance(w, Bind)]
    by_name = {obj.name: obj for obj in where}
    on_node: dict[str, list[Pod]] = {name: [] for name in by_name}
    for obj in placed:  # in the order of the decisions
        assert isinstance(obj, Pod)
        place = by_name[obj.spec.node_name or ""]
        _check_spread(obj, place, on_node, by_name)
        on_node[place.name].append(obj)
    for name, there in on_node.items():
        _check_room(by_name[name], there)
        for obj in there:
            _check_node(by_name[name], obj)
            _check_apart(obj, by_name, on_node)


def _check_room(place: Node, there: list[Pod]) -> None:
    offered = place.status.allocatable or {}
    assert len(there) <= offered["pods"].value()
    used = sum(requests_of(obj.spec).cpu for obj in there)
    assert not used or used <= offered["cpu"].milli_value()
    ports = Counter(p.host_port for f in there for p in f.spec.containers[0].ports or ())
    assert all(count == 1 for count in ports.values())


def _check_node(place: Node, pod: Pod) -> None:
    rule = NodeRule.of(pod.spec.node_selector, pod.spec.affinity)
    assert rule.matches(place.labels, place.name)
    assert not find_untolerated(place.spec.taints or (), pod.spec.tolerations or [])


def _check_apart(pod: Pod, nodes: dict[str, Node], on_node: dict[str, list[Pod]]) -> None:
    far = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None
    for term in (far and far.required_during_scheduling_ignored_during_execution) or ():
        key = term.topology_key
        assert term.label_selector is not None
        mine = nodes[pod.spec.node_name or ""].labels[key]
        for name, there in on_node.items():
            if nodes[name].labels[key] == mine:
                others = [other for other in there if other is not pod]
                wanted = (term.label_selector.match_labels or {})["app"]
                assert all(other.labels["app"] != wanted for other in others)


def _check_spread(
    pod: Pod, place: Node, on_node: dict[str, list[Pod]], nodes: dict[str, Node]
) -> None:
    """Checks the constraint against the pods that were bound before."""
    if not pod.spec.topology_spread_constraints:
        return
    counts = {place.labels[ZONE]: 0 for place in nodes.values()}
    for name, there in on_node.items():
        same = sum(other.labels["app"] == pod.labels["app"] for other in there)
        counts[nodes[name].labels[ZONE]] += same
    assert counts[place.labels[ZONE]] + 1 - min(counts.values()) <= 1
