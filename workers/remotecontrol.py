"""Celery's remote control: workers answer queries and refuse commands.

Otherwise any client that can publish to the broker could remove a worker's pool or its queues or
shut it down, and nothing in kcm would restore them. The queries that Flower needs are answered.
"""

from __future__ import annotations

from typing import Any

from celery import signals

# Queries, and commands that only change how much workers report.
ANSWERED = frozenset(
    {
        "active", "active_queues", "clock", "conf", "enable_events", "heartbeat", "ping",
        "query_task", "registered", "report", "reserved", "revoked", "scheduled", "stats",
    }
)  # fmt: skip
REFUSAL = "kcm accepts no commands by remote control: see Security in docs/operations.md"


def connect() -> None:
    """Restricts the workers of this process when they start. Further calls do nothing."""
    signals.celeryd_init.connect(_restrict, dispatch_uid="kcm-remote-control")


def _restrict(**_: Any) -> None:
    from celery.worker.control import Panel  # noqa: PLC0415 - only workers have it

    for name in Panel.data.keys() - ANSWERED:
        Panel.data[name] = _greet if name == "hello" else _refuse


def _refuse(state: Any, **_: Any) -> dict[str, str]:
    return {"error": REFUSAL}


def _greet(state: Any, from_node: str = "", **_: Any) -> dict[str, Any] | None:
    """Responds to a worker that starts with mingle. Its revoked tasks are ignored."""
    if from_node == state.hostname:
        return None
    return {"revoked": [], "clock": state.app.clock.forward()}
