"""Cases of small controllers: certificates, bootstrap tokens, volumes, and clouds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.upstream import cases
from tests.upstream.accepted import Differences
from tests.upstream.adapter import controllers
from tests.upstream.cases import Case

_CALLS: dict[str, Callable[[Case], Any]] = {
    "signer": controllers.sign,
    "duration": controllers.measure_duration,
    "signing_token": controllers.read_token,
    "bootstrap_signer": controllers.sign_cluster_info,
    "token_cleaner": controllers.clean_token,
    "expander": controllers.expand,
    "attach_detach": controllers.attach,
    "cloud_node": controllers.sync_cloud_node,
    "node_labels": controllers.reconcile_node_labels,
    "cloud_node_lifecycle": controllers.monitor_node,
    "routes": controllers.sync_routes,
    "networking": controllers.set_networking,
    "responsible": controllers.is_responsible,
    "needs_cleanup": controllers.wants_cleanup,
    "needs_update": controllers.wants_update,
    "node_matters": controllers.node_matters,
    "selected": controllers.is_selected,
    "balancers": controllers.sync_balancer,
}


def compare_controllers() -> Differences:
    """Returns where a controller decides otherwise."""
    differing: dict[int, str] = {}
    for number, case in cases.read("controllers"):
        got, want = _CALLS[case["controller"]](case), case["want"]
        if texts := list(cases.compare(_summarize(want), _summarize(got))):
            differing[number] = f"{case['controller']} {case['t']}: " + "; ".join(texts)
    return {"controllers": differing}


def _summarize(value: Any) -> Any:
    """Returns a result without what the store or Go's zero values add."""
    if not isinstance(value, dict):
        return value
    value = {**value}
    if node := value.get("node"):
        meta = {name: node["metadata"].get(name) for name in ("name", "labels", "annotations")}
        value["node"] = cases.without_empty({**node, "metadata": meta})
    if routes := value.get("routes"):
        value["routes"] = controllers.tell_routes(routes) if "Name" in routes[0] else routes
    return {name: part for name, part in value.items() if part is not None}
