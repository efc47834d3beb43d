"""The settings of `kcm up --demo`, with which failures of nodes take effect within seconds."""

from __future__ import annotations

from collections.abc import Sequence

from kcm.cli.up.plan import DEMO_GRACE
from kcm.registry import controller_types

# The manager's flags. Those that its controllers do not have are left out.
_FLAGS = {
    "node-monitor-grace-period": f"{DEMO_GRACE}s",
    "node-monitor-period": "1s",
    "pod-eviction-timeout": f"{DEMO_GRACE}s",
    "attach-detach-max-wait-for-unmount": f"{DEMO_GRACE}s",
}

# Settings of every process, as environment variables.
SETTINGS = {
    "KCM_DEFAULT_NOT_READY_TOLERATION_SECONDS": f"{DEMO_GRACE}",
    "KCM_DEFAULT_UNREACHABLE_TOLERATION_SECONDS": f"{DEMO_GRACE}",
}


def manager_flags(given: Sequence[str]) -> list[str]:
    """Returns the manager's flags for short times, followed by `given`, which override them."""
    names = _list_flag_names()
    return [*(f"--{name}={value}" for name, value in _FLAGS.items() if name in names), *given]


def _list_flag_names() -> set[str]:
    fields = (name for kind in controller_types() for name in kind.options_type.model_fields)
    return {name.replace("_", "-") for name in fields}
