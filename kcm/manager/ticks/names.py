"""The names of periodic loops in messages, leases, keys and metrics."""

from __future__ import annotations

from kcm.reconcile.contract import Controller, Tick


def loop_name(controller: Controller, tick: Tick) -> str:
    """Returns a loop's name: the controller's, followed by the tick's own if they differ."""
    if tick.name == controller.short_name:
        return tick.name
    return f"{controller.short_name}.{tick.name}"
