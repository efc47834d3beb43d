"""How periodic loops are called, in messages, leases, keys and metrics."""

from __future__ import annotations

from kcm.reconcile.contract import Controller, Tick


def loop_name(controller: Controller, tick: Tick) -> str:
    """A loop's name: the controller's, with the tick's own where they differ."""
    if tick.name == controller.short_name:
        return tick.name
    return f"{controller.short_name}.{tick.name}"
