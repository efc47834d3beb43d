"""The part of `kcm status` about evictions: each zone's state, rate and waiting nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kcm.cli.objects.table import TextTable
from kcm.controllers.nodelifecycle.memory import load_zones
from kcm.controllers.nodelifecycle.monitor import bucket_of
from kcm.controllers.nodelifecycle.zones import format_zone
from kcm.kinds.printing.durations import human_duration
from kcm.redisio import RedisIO

MONITOR = "nodelifecycle.monitorNodeStatus"


@dataclass(frozen=True)
class ZoneEvictions:
    """The state of a zone at the last pass of the node lifecycle controller."""

    zone: str
    state: str
    nodes: int
    not_ready: int
    rate: float  # nodes that may be tainted each second
    tokens: float  # nodes that may be tainted now
    waiting: Sequence[str]  # nodes that wait to be tainted, the longest waiting first
    longest: float  # seconds for which the first of them has waited


def read_evictions(io: RedisIO, now: float) -> list[ZoneEvictions]:
    """Returns the state of every zone. `now` is the time of the Redis server in seconds.

    Raises StoreUnavailable.
    """
    raw = io.execute("HGET", io.keys.tick_state(MONITOR), "zones")
    zones = load_zones({"zones": raw.decode()} if raw else {})
    if not zones:
        return []
    limits = io.call("limiter_read", *(bucket_of(key) for key in zones), call_id="")[1:]
    return [
        ZoneEvictions(
            zone=format_zone(key),
            state=zone.state.value,
            nodes=zone.nodes,
            not_ready=zone.unhealthy,
            rate=zone.rate,
            tokens=float(tokens or 0),
            waiting=list(zone.queue),
            longest=round(max(0.0, now - min(zone.queue.values(), default=now)), 1),
        )
        for (key, zone), tokens in zip(zones.items(), limits[2::3], strict=True)
    ]


def lines(zones: Sequence[ZoneEvictions]) -> list[str]:
    """Returns a table of the zones, no lines if there are none."""
    if not zones:
        return []
    heads = ["ZONE", "STATE", "NODES", "NOT READY", "EVICTIONS", "TOKENS", "WAITING", "LONGEST"]
    rows = [
        [
            zone.zone,
            zone.state,
            str(zone.nodes),
            str(zone.not_ready),
            f"{zone.rate:g}/s",
            f"{zone.tokens:.2f}",
            str(len(zone.waiting)),
            human_duration(zone.longest) if zone.waiting else "-",
        ]
        for zone in zones
    ]
    return ["", *TextTable(heads).lines(rows)]
