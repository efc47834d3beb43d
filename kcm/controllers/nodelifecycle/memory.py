"""What the passes remember, in Redis: when each node last gave a sign of life, by the clock
that all hosts share, and the zones with their queues.

Upstream keeps this in its process and starts anew with it. Ours outlives everything, so a
time when nobody looked must not count against the nodes: see `Memory.bridge`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kcm.controllers.nodelifecycle.zones import Zone, ZoneState

# Monitor periods without a pass, after which nodes are not to blame: more than two. A pass
# that was lost makes it two and what the next one is late.
GAP_PERIODS = 2.5


class Health(NamedTuple):
    """The last that was observed of a node. Times are seconds; objects' own times are only
    compared with themselves, never with a clock."""

    uid: str
    probe: float  # when a heartbeat or a renewed lease was last seen
    transition: float  # when Ready was last seen to change
    ready: str  # status of the Ready condition; '' where there is none
    heartbeat: float  # its lastHeartbeatTime
    since: float  # its lastTransitionTime
    renewed: float  # the lease's renewTime; 0 without one


@dataclass
class Memory:
    """All of it."""

    nodes: dict[str, Health] = field(default_factory=dict)
    zones: dict[str, Zone] = field(default_factory=dict)
    last: float | None = None  # when the last pass looked
    epoch: str = ""

    @classmethod
    def load(cls, state: Mapping[str, str]) -> Memory:
        nodes = json.loads(state.get("nodes", "{}"))
        return cls(
            nodes={name: Health(*values) for name, values in nodes.items()},
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
        """Begin a pass at `moment`. After more than two periods without one, in a new epoch,
        or when the clock was set back, all observed times move along, so that every node is
        as old as it was when last looked at. Returns by how much."""
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
        """As if every node had given a sign of life now."""
        for name, health in self.nodes.items():
            self.nodes[name] = health._replace(probe=moment, transition=moment)


def load_zones(state: Mapping[str, str]) -> dict[str, Zone]:
    """The zones alone."""
    zones = json.loads(state.get("zones", "{}"))
    return {
        key: Zone(**values | {"state": ZoneState(values["state"])}) for key, values in zones.items()
    }


def _dump_zones(zones: Mapping[str, Zone]) -> str:
    return json.dumps({key: vars(zone) for key, zone in zones.items()}, separators=(",", ":"))
