"""Cases of autoscalers: how many replicas metrics ask for, what limits them, and whole syncs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.upstream import cases
from tests.upstream.accepted import Differences
from tests.upstream.adapter import NotExpressible, autoscaling
from tests.upstream.cases import Case

_PARTS: dict[str, Callable[[Case], Any]] = {
    "calculator": autoscaling.calculate,
    "groups": autoscaling.group,
    "requests": autoscaling.sum_requests,
}

# Upstream records it when the case was printed already.
_AFTERWARDS = "FailedComputeMetricsReplicas"


def compare_autoscaling() -> Differences:
    """Returns where autoscalers count, limit or decide otherwise."""
    differing: Differences = {f"autoscaling: {table}": {} for table in (*_PARTS, "limits", "syncs")}
    for number, case in cases.read("autoscaling"):
        if text := "; ".join(_differences(case)):
            differing[f"autoscaling: {case['table']}"][number] = f"{case['t']}: {text}"
    return differing


def _differences(case: Case) -> list[str]:
    if case["table"] == "limits":
        replicas, reason = autoscaling.limit(case)
        wanted = case.get("reason", reason)
        return list(cases.compare([case["want"], wanted], [replicas, reason]))
    if case["table"] == "syncs":
        return _compare_sync(case)
    return list(cases.compare(case["want"], _PARTS[case["table"]](case)))


def _compare_sync(case: Case) -> list[str]:
    try:
        got = autoscaling.sync(case)
    except NotExpressible as reason:
        return [f"not expressible: {reason}"]
    wanted = case["want"]
    events = [event for event in got.events if _AFTERWARDS not in event]
    return [
        *cases.compare(_summarize(wanted["status"]), _summarize(got.status), "status"),
        *cases.compare(wanted.get("scale"), got.scale, "scale"),
        *cases.compare(sorted(wanted["events"]), sorted(events), "events"),
    ]


def _summarize(status: Any) -> Any:
    """Returns a status without times."""
    conditions = [
        {name: part for name, part in condition.items() if name != "lastTransitionTime"}
        for condition in status.get("conditions", ())
    ]
    kept = ("currentReplicas", "desiredReplicas", "currentMetrics")
    parts = {name: status.get(name) or None for name in kept}
    return cases.without_empty({**parts, "conditions": conditions})
