"""Orders to a running simulator: a ConfigMap that commands write and the simulator watches.

There is one entry per node: `stopped TIME` (its kubelet is down), `partitioned TIME` (it runs, but
nothing that it does reaches the API), `started TIME` (its kubelet was started then). Entries
outlive the Node object and the simulator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from kcm import errors
from kcm.api import scheme
from kcm.api.core_v1 import ConfigMap
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.apimachinery.times import format_time, parse_time
from kcm.simulated.scripts import PREFIX
from kcm.store import Store

NAMESPACE, NAME = "kube-system", "kcm-simulated-nodes"
KEY = f"{NAMESPACE}/{NAME}"
GRACE_ANNOTATION = PREFIX + "node-monitor-grace-period"
_CONFIGMAPS = scheme.by_name("configmaps")

State = Literal["stopped", "partitioned", "started"]
_STATES: Mapping[str, State] = {
    "stopped": "stopped",
    "partitioned": "partitioned",
    "started": "started",
}


@dataclass(frozen=True, slots=True)
class Order:
    """The order to one node, and when it was given."""

    state: State = "started"
    since: datetime | None = None

    @property
    def silent(self) -> bool:
        return self.state != "started"

    def __str__(self) -> str:
        return f"{self.state} {format_time(self.since)}" if self.since else self.state


AS_USUAL = Order()


def read(stored: KubeObject | None) -> dict[str, Order]:
    """Returns the orders by node; entries that are not valid are left out."""
    data = stored.data if isinstance(stored, ConfigMap) else None
    orders: dict[str, Order] = {}
    for node, text in (data or {}).items():
        state, _, since = text.partition(" ")
        if state not in _STATES:
            continue
        try:
            orders[node] = Order(_STATES[state], parse_time(since) if since else None)
        except ValueError:
            orders[node] = Order(_STATES[state])
    return orders


def current(store: Store) -> ConfigMap | None:
    """Returns the stored orders."""
    stored = store.get_all([(_CONFIGMAPS, KEY)])[0]
    return stored if isinstance(stored, ConfigMap) else None


def give(store: Store, changes: Mapping[str, Order | None]) -> None:
    """Stores orders; None takes one back. Raises StoreUnavailable and Conflict."""
    _write(store, {name: str(order) if order else None for name, order in changes.items()}, {})


def note_grace_period(store: Store, seconds: float) -> None:
    """Stores how long the control plane waits for a silent node, for commands to print."""
    stored = current(store)
    if stored is None or stored.annotations.get(GRACE_ANNOTATION) != f"{seconds:g}s":
        _write(store, {}, {GRACE_ANNOTATION: f"{seconds:g}s"})


def _write(store: Store, data: Mapping[str, str | None], annotations: Mapping[str, str]) -> None:
    patch = {"data": dict(data), "metadata": {"annotations": dict(annotations)}}
    try:
        store.patch(_CONFIGMAPS, KEY, patch)
        return
    except errors.NotFound:
        pass
    given = {name: text for name, text in data.items() if text is not None}
    meta = ObjectMeta(name=NAME, namespace=NAMESPACE, annotations=dict(annotations) or None)
    try:
        store.create(ConfigMap(metadata=meta, data=given))
    except errors.AlreadyExists:
        store.patch(_CONFIGMAPS, KEY, patch)
