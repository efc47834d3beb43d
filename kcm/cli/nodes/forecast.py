"""Forecasts what the control plane will do about unreachable nodes, and when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from kcm.api.core_v1 import Pod
from kcm.apimachinery.durations import format_seconds
from kcm.cli.nodes.registered import RegisteredNode
from kcm.registry import controller_types
from kcm.store import Store

UNREACHABLE = "node.kubernetes.io/unreachable"
MONITOR_PERIOD = 5.0  # seconds between the controller's passes
CONTROLLER = "node-lifecycle-controller"
_PODS = Pod.resource


def forecast(
    store: Store, chosen: Sequence[RegisteredNode], state: str, grace: float
) -> Iterator[str]:
    """Yields the lines of the forecast.

    `chosen` are the nodes that were stopped or partitioned (`state`), `grace` is the controller's
    grace period in seconds.
    """
    names = ", ".join(node.node.name for node in chosen)
    verb = "is" if len(chosen) == 1 else "are"
    yield f"{names} {verb} {state}. Unless undone before:"
    last = min((node.renewed for node in chosen if node.renewed), default=None)
    yield from _row("now", "no lease is renewed and no status reported; the pods stay as they are")
    if not any(controller.name == CONTROLLER for controller in controller_types()):
        yield from _row("then", "nothing: this kcm has no node lifecycle controller")
        return
    yield from _row(
        f"{_clock(last, grace)}",
        f"{format_seconds(grace)} without a heartbeat (and up to {format_seconds(MONITOR_PERIOD)} "
        "more): Ready Unknown, its pods' Ready is False, "
        f"taint {UNREACHABLE}, NoSchedule and NoExecute",
    )
    for wait, count in sorted(_count_toleration_seconds(store, chosen).items()):
        pods = f"{count} pod{'' if count == 1 else 's'}"
        if wait == float("inf"):
            yield from _row("never", f"{pods} stay: they tolerate the taint without a limit")
        else:
            text = f"{format_seconds(wait)} later: {pods} deleted, and replaced on other nodes"
            yield from _row(_clock(last, grace + wait), f"{text} by their controllers")
    yield from _row("", "Deleted pods stay Terminating until their node is back, or is deleted.")


def _count_toleration_seconds(store: Store, chosen: Sequence[RegisteredNode]) -> Counter[float]:
    """Returns the numbers of pods by the seconds for which they tolerate an unreachable node."""
    keys = [(_PODS, key) for node in chosen for key in node.pods]
    return Counter(_toleration_seconds(pod) for pod in store.get_all(keys) if pod is not None)


def _toleration_seconds(pod: Pod) -> float:
    tolerated = [
        float("inf") if t.toleration_seconds is None else max(float(t.toleration_seconds), 0.0)
        for t in pod.spec.tolerations or ()
        if t.key in (UNREACHABLE, None) and t.effect in ("NoExecute", None)
    ]
    return min(tolerated, default=0.0)


def _clock(last: datetime | None, wait: float) -> str:
    if last is None:
        return f"+{format_seconds(wait)}"
    return f"~{(last + timedelta(seconds=wait)):%H:%M:%S}"


def _row(when: str, text: str) -> Iterator[str]:
    yield f"  {when:<10} {text}"
