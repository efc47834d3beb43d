"""Reads from Redis what `kcm status` shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from kcm.api.core_v1 import Node
from kcm.api.scheme import BUILT_IN
from kcm.cli.evictions import ZoneEvictions, read_evictions
from kcm.coordination.presence import Member, members
from kcm.coordination.workqueue.queue import read_stats
from kcm.helpers.node_reports import ready_status
from kcm.redisio import RedisIO
from kcm.store import StoreReader, damage
from kcm.store.reader import each_list_item

_ZONE = "topology.kubernetes.io/zone"


@dataclass(frozen=True)
class QueueOverview:
    """The state of one controller's work queue. Times are in seconds."""

    controller: str
    depth: int
    in_flight: int
    delayed: int
    failing: int
    oldest: float
    retries: int
    last_sync: float | None  # seconds ago


@dataclass(frozen=True)
class Leader:
    """The holder of an internal lease, and the seconds until it expires."""

    lease: str
    holder: str
    expires_in: float


@dataclass(frozen=True)
class ZoneOverview:
    """The numbers of nodes in a zone, by their Ready condition."""

    name: str
    nodes: int
    ready: int
    not_ready: int
    unknown: int
    unschedulable: int


@dataclass(frozen=True)
class Overview:
    """The state of all queues, leases, streams, processes and nodes at one moment."""

    queues: Sequence[QueueOverview]
    leaders: Sequence[Leader]
    streams: Mapping[str, int]
    bus: Mapping[str, int]
    processes: Sequence[Member]
    evictions: Sequence[ZoneEvictions] = ()
    zones: Sequence[ZoneOverview] = ()
    damaged: Mapping[str, str] = field(default_factory=dict)  # the reasons by resource and key

    def to_dict(self) -> dict[str, Any]:
        """Returns the overview as JSON values."""
        return asdict(self)


def read_overview(io: RedisIO) -> Overview:
    """Reads the overview. Raises StoreUnavailable."""
    now = io.now()
    bus_counts = _text_pairs(io.execute("HGETALL", io.keys.event_stats()))
    return Overview(
        queues=[
            QueueOverview(
                controller=stats.name,
                depth=stats.depth,
                in_flight=stats.running,
                delayed=stats.delayed,
                failing=stats.failing,
                oldest=stats.oldest,
                retries=stats.retries,
                last_sync=stats.since_finish,
            )
            for stats in read_stats(io)
        ],
        leaders=list(_leaders(io, now)),
        streams=_streams(io),
        bus={name: int(value) for name, value in bus_counts.items()},
        processes=members(io),
        evictions=read_evictions(io, now),
        zones=_zones(io),
        damaged={
            f"{name} {key}": why for (name, key), why in sorted(damage.read_damaged(io).items())
        },
    )


def _zones(io: RedisIO) -> list[ZoneOverview]:
    nodes_by_zone: dict[str, list[Node]] = {}
    for node in each_list_item(StoreReader(io), Node.resource):
        nodes_by_zone.setdefault(node.labels.get(_ZONE, ""), []).append(node)
    return [_zone(name, nodes) for name, nodes in sorted(nodes_by_zone.items())]


def _zone(name: str, nodes: Sequence[Node]) -> ZoneOverview:
    states = Counter(ready_status(node) for node in nodes)
    cordoned = sum(bool(node.spec.unschedulable) for node in nodes)
    unknown = len(nodes) - states["True"] - states["False"]
    return ZoneOverview(name, len(nodes), states["True"], states["False"], unknown, cordoned)


def _leaders(io: RedisIO, now: float) -> Iterator[Leader]:
    first = io.keys.lease("")
    names = sorted({key.removeprefix(first) for key in io.scan(f"{first}*")})
    replies = io.pipeline([("HGETALL", io.keys.lease(name)) for name in names])
    for name, reply in zip(names, replies, strict=True):
        fields = _text_pairs(reply)
        left = float(fields.get("expires", 0)) / 1000 - now
        if fields.get("holder") and left > 0:
            yield Leader(name, fields["holder"], round(left, 1))


def _streams(io: RedisIO) -> dict[str, int]:
    keys = {"events": io.keys.events(), "events:dead": io.keys.dead_events()}
    keys |= {f"watch:{r.name}": io.keys.watch(r.name) for r in BUILT_IN.resources()}
    lengths = io.pipeline([("XLEN", key) for key in keys.values()])
    return dict(zip(keys, map(int, lengths), strict=True))


def _text_pairs(reply: Any) -> dict[str, str]:
    """Returns a hash from a reply, which is a list or a dict, depending on the protocol version."""
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
    return {name.decode(): value.decode() for name, value in pairs}
