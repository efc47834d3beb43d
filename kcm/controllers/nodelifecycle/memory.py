"""The memory of the monitor's passes in Redis: the health of each node, and the zones' queues.

Times are those of the clock of Redis, which all hosts share. Upstream loses this memory with its
process. Here it survives every process, so a time without passes must not count against the nodes:
see `LifecycleMemory.bridge`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kcm.controllers.nodelifecycle.zones import Zone, ZoneState

# The number of monitor periods after which a time without passes does not count against nodes. A
# single lost pass makes a gap of two periods and the delay of the next pass.
GAP_PERIODS = 2.5


class NodeHealth(NamedTuple):
    """The health of a node when it was last observed. All times are in seconds.

    The times from the objects themselves are compared only with each other, never with a clock.
    """

    uid: str
    probe: float  # when a heartbeat or a renewed lease was last seen
    transition: float  # when Ready was last seen to change
    ready: str  # the status of the Ready condition, "" without one
    heartbeat: float  # its lastHeartbeatTime
    since: float  # its lastTransitionTime
    renewed: float  # the lease's renewTime, 0 without a lease


@dataclass
class LifecycleMemory:
    """All that the monitor remembers between passes."""

    nodes: dict[str, NodeHealth] = field(default_factory=dict)
    zones: dict[str, Zone] = field(default_factory=dict)
    last: float | None = None  # when the last pass ran
    epoch: str = ""

    @classmethod
    def load(cls, state: Mapping[str, str]) -> LifecycleMemory:
        nodes = json.loads(state.get("nodes", "{}"))
        return cls(
            nodes={name: NodeHealth(*values) for name, values in nodes.items()},
            zones=load_zones(state),
            last=float(state["last"]) if "last" in state else None,
            epoch=state.get("epoch", ""),
        )

    def dump(self) -> dict[str, str]:
        return {
            "nodes": json.dumps(self.nodes, separators=(",", ":")),
            "zones": _dump_zones(self.zones),
            "last": repr(self.last),
            "epoch": self.epoch,
        }

    def bridge(self, moment: float, epoch: str, period: float) -> float:
        """Begins a pass at `moment`, and returns the seconds by which the observed times are
        shifted.

        After more than GAP_PERIODS periods without a pass, in a new epoch, or when the clock was
        set back, they are shifted so that every node's last heartbeat is as old as it was in the
        last pass. `period` is in seconds.
        """
        gap = moment - self.last if self.last is not None else 0.0
        usual = 0 <= gap <= GAP_PERIODS * period and self.epoch in ("", epoch)
        self.last, self.epoch = moment, epoch
        if usual or not self.nodes:
            return 0.0
        for name, health in self.nodes.items():
            self.nodes[name] = health._replace(
                probe=health.probe + gap, transition=health.transition + gap
            )
        return gap

    def restart_clocks(self, moment: float) -> None:
        """Sets the observed times of every node to `moment`, as if a heartbeat had been seen
        then.
        """
        for name, health in self.nodes.items():
            self.nodes[name] = health._replace(probe=moment, transition=moment)


def load_zones(state: Mapping[str, str]) -> dict[str, Zone]:
    """Returns the zones in the memory, by their keys, without reading the nodes."""
    zones = json.loads(state.get("zones", "{}"))
    return {
        key: Zone(**values | {"state": ZoneState(values["state"])}) for key, values in zones.items()
    }


def _dump_zones(zones: Mapping[str, Zone]) -> str:
    return json.dumps({key: vars(zone) for key, zone in zones.items()}, separators=(",", ":"))
