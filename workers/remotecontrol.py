"""Celery's remote control: workers answer questions and take no orders.

Otherwise whoever can publish to the broker could take away a worker's pool, its queues or its life,
and nothing in kcm would bring them back. What remains is what Flower shows.
"""

from __future__ import annotations

from typing import Any

from celery import signals

# Questions, and orders that only change how much workers report.
ANSWERED = frozenset(
    {
        "active", "active_queues", "clock", "conf", "enable_events", "heartbeat", "ping",
        "query_task", "registered", "report", "reserved", "revoked", "scheduled", "stats",
    }
)  # fmt: skip
REFUSAL = "kcm takes no orders by remote control: see Security in docs/operations.md"


def connect() -> None:
    """Restricts the workers of this process when they start. A second call changes nothing."""
    signals.celeryd_init.connect(_restrict, dispatch_uid="kcm-remote-control")


def _restrict(**_: Any) -> None:
    from celery.worker.control import Panel  # noqa: PLC0415 - only workers have it

    for name in Panel.data.keys() - ANSWERED:
        Panel.data[name] = _greet if name == "hello" else _refuse


def _refuse(state: Any, **_: Any) -> dict[str, str]:
    return {"error": REFUSAL}


def _greet(state: Any, from_node: str = "", **_: Any) -> dict[str, Any] | None:
    """Answers a worker that starts with mingle. Its revoked tasks are not accepted."""
    if from_node == state.hostname:
        return None
    return {"revoked": [], "clock": state.app.clock.forward()}
