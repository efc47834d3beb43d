"""Builders that several tests of DaemonSets share."""

from __future__ import annotations

from typing import Any

from kcm.api.apps_v1 import (
    DaemonSet,
    DaemonSetUpdateStrategy,
    RollingUpdateDaemonSet,
)
from kcm.api.core_v1 import Taint
from tests.set_builders import daemon_set, template

LABELS = {"app": "agent"}


def build_rolling_update(unavailable: int | str = 1, surge: int | str = 0) -> dict[str, Any]:
    update = RollingUpdateDaemonSet(max_unavailable=unavailable, max_surge=surge)
    return {"update_strategy": DaemonSetUpdateStrategy(type="RollingUpdate", rolling_update=update)}


def of(**spec: Any) -> DaemonSet:
    """Returns a DaemonSet whose pod template has these fields in its spec."""
    return daemon_set(template=template(LABELS, **spec))


def taint(effect: str, key: str = "k") -> Taint:
    return Taint(key=key, effect=effect)


def affinity(*names: str) -> dict[str, Any]:
    field = {"key": "metadata.name", "operator": "In", "values": list(names)}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
