"""Commands to a running simulator, which `kcm nodes` writes to a ConfigMap that it watches.

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
from kcm.api.core_v1 import ConfigMap
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta, format_time, parse_time
from kcm.simulation.scripting.scripts import PREFIX
from kcm.store import Store

NAMESPACE, NAME = "kube-system", "kcm-simulated-nodes"
KEY = f"{NAMESPACE}/{NAME}"
GRACE_ANNOTATION = PREFIX + "node-monitor-grace-period"
_CONFIGMAPS = ConfigMap.resource

State = Literal["stopped", "partitioned", "started"]
_STATES: Mapping[str, State] = {
    "stopped": "stopped",
    "partitioned": "partitioned",
    "started": "started",
}


@dataclass(frozen=True, slots=True)
class NodeCommand:
    """The state that one node was commanded into, and since when."""

    state: State = "started"
    since: datetime | None = None

    @property
    def silent(self) -> bool:
        """Whether nothing that the node does reaches the API."""
        return self.state != "started"

    def __str__(self) -> str:
        return f"{self.state} {format_time(self.since)}" if self.since else self.state


AS_USUAL = NodeCommand()


def parse(stored: KubeObject | None) -> dict[str, NodeCommand]:
    """Returns the commands in the ConfigMap by node. Invalid entries are left out."""
    data = stored.data if isinstance(stored, ConfigMap) else None
    commands: dict[str, NodeCommand] = {}
    for node, text in (data or {}).items():
        state, _, since = text.partition(" ")
        if state not in _STATES:
            continue
        try:
            commands[node] = NodeCommand(_STATES[state], parse_time(since) if since else None)
        except ValueError:
            commands[node] = NodeCommand(_STATES[state])
    return commands


def get_stored(store: Store) -> ConfigMap | None:
    """Returns the ConfigMap with the commands, or None if there is none."""
    return store.find(_CONFIGMAPS, KEY)


def send(store: Store, changes: Mapping[str, NodeCommand | None]) -> None:
    """Stores commands by node; None removes a command. Raises StoreUnavailable and Conflict."""
    texts = {name: str(command) if command else None for name, command in changes.items()}
    _write(store, texts, {})


def store_grace_period(store: Store, seconds: float) -> None:
    """Stores the control plane's node monitor grace period, which commands print."""
    stored = get_stored(store)
    if stored is None or stored.annotations.get(GRACE_ANNOTATION) != f"{seconds:g}s":
        _write(store, {}, {GRACE_ANNOTATION: f"{seconds:g}s"})


def _write(store: Store, data: Mapping[str, str | None], annotations: Mapping[str, str]) -> None:
    patch = {"data": dict(data), "metadata": {"annotations": dict(annotations)}}
    try:
        store.patch(_CONFIGMAPS, KEY, patch)
        return
    except errors.NotFound:
        pass
    present = {name: text for name, text in data.items() if text is not None}
    meta = ObjectMeta(name=NAME, namespace=NAMESPACE, annotations=dict(annotations) or None)
    try:
        store.create(ConfigMap(metadata=meta, data=present))
    except errors.AlreadyExists:
        store.patch(_CONFIGMAPS, KEY, patch)
