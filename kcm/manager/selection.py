"""Which controllers run."""

from __future__ import annotations

from kcm.manager.options import ManagerOptions
from kcm.reconcile.contract import Controller
from kcm.registry import controller_types


def enabled_controllers(options: ManagerOptions) -> list[Controller]:
    """An instance of every controller that the options select."""
    return [kind() for kind in controller_types(options.generic.controller_modules)]
