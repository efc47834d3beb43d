"""Measurements in Redis: nodes report those of themselves and their pods, and any program
publishes.

Measurements are not objects, since they change all the time and are never watched. The report of a
node is one hash that expires, so that an unreachable node soon has no usage. A published value
stays until it is deleted or expires. For a node that reports nothing, an API server writes what it
has scraped from the kubelet.

Guarantees: a node's report is replaced as a whole. A published value that is not a quantity is
ignored.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import reduce
from typing import Any

import structlog

from kcm.apimachinery.quantity import Quantity, ResourceList, add_amounts
from kcm.redisio import RedisIO

log = structlog.get_logger("kcm.store")

EXTERNAL = "external"  # takes the place of a resource for external metrics
# No key of a pod is one of these.
_TIME, _WINDOW, _NODE, _SCRAPED = ".time", ".window", ".node", ".scraped"
_AT_A_TIME = 64  # the most reports that one call writes


@dataclass(frozen=True)
class PodUsage:
    """The usage of a pod's containers by name, and the pod's custom metrics.

    `measured` is the moment and the window of its measurement, by default those of the report.
    """

    containers: Mapping[str, ResourceList]
    metrics: Mapping[str, Quantity] = field(default_factory=dict)
    measured: tuple[float, float] | None = None


@dataclass(frozen=True)
class NodeReport:
    """The usage of one node and its pods in the `window` seconds before `moment` (seconds since
    1970).

    `scraped` says that the node does not report by itself.
    """

    node: str
    moment: float
    window: float
    usage: ResourceList  # {} if only the pods were measured
    pods: Mapping[str, PodUsage] = field(default_factory=dict)  # by key
    scraped: bool = False


@dataclass(frozen=True)
class Measured:
    """A pod's or a node's usage, and when it was measured."""

    moment: datetime
    window: float  # seconds
    usage: ResourceList  # the total
    containers: Mapping[str, ResourceList] = field(default_factory=dict)
    metrics: Mapping[str, Quantity] = field(default_factory=dict)


@dataclass(frozen=True)
class Published:
    """One published value: of an object by its key, or of a namespace for an external metric."""

    key: str
    labels: Mapping[str, str]
    value: Quantity


class UsageBoard:
    """Writes and reads measurements."""

    def __init__(self, io: RedisIO) -> None:
        self._io = io

    # --- nodes

    def report(self, reports: Sequence[NodeReport], lasts: float) -> None:
        """Replaces the earlier reports of these nodes. The reports expire after `lasts` seconds.

        Raises: StoreUnavailable, OutOfMemory.
        """
        for start in range(0, len(reports), _AT_A_TIME):
            args: list[str | int] = [round(lasts * 1000)]
            for report in reports[start : start + _AT_A_TIME]:
                fields = _fields(report)
                args += [self._io.keys.reported(report.node), len(fields), *fields]
            self._io.call("usage_report", *args, call_id="")

    def reporting(self, names: Sequence[str]) -> set[str]:
        """Returns those of these nodes that report by themselves. Raises: StoreUnavailable."""
        asked = [(self._io.keys.reported(name), (_SCRAPED,)) for name in names]
        found = zip(names, self._read(asked), strict=True)
        return {name for name, (when, [scraped]) in found if when is not None and scraped is None}

    def nodes(self, names: Sequence[str]) -> dict[str, Measured]:
        """Returns the usage by name, of those nodes that have reported any. Raises:
        StoreUnavailable.
        """
        asked = [(self._io.keys.reported(name), (_NODE,)) for name in names]
        usage = {}
        for name, (when, [raw]) in zip(names, self._read(asked), strict=True):
            if when is not None and raw is not None:
                usage[name] = Measured(*when, usage=_amounts(json.loads(raw)))
        return usage

    def pods(self, places: Iterable[tuple[str, str]]) -> dict[str, Measured]:
        """Returns the usage by key, of those pods for which it was reported.

        `places` are pairs of the pods' nodes and keys. Raises: StoreUnavailable.
        """
        by_node: dict[str, list[str]] = defaultdict(list)
        for node, key in places:
            if node:
                by_node[node].append(key)
        asked = [(self._io.keys.reported(node), tuple(keys)) for node, keys in by_node.items()]
        usage = {}
        for keys, (when, values) in zip(by_node.values(), self._read(asked), strict=True):
            for key, raw in zip(keys, values, strict=True):
                if when is not None and raw is not None:
                    usage[key] = _of_pod(when, json.loads(raw))
        return usage

    def _read(
        self, asked: Sequence[tuple[str, tuple[str, ...]]]
    ) -> Iterator[tuple[tuple[datetime, float] | None, Sequence[bytes | None]]]:
        """Yields the moment and window of each hash's measurement, and the requested fields.

        The first is None if the hash does not exist.
        """
        if not asked:
            return
        commands = [("HMGET", key, _TIME, _WINDOW, *fields) for key, fields in asked]
        for moment, window, *values in self._io.pipeline(commands):
            if moment is None:
                yield None, values
            else:
                yield _when(int(moment), float(window or 0)), values

    # --- published values

    def publish(self, of: str, metric: str, key: str, value: Quantity) -> None:
        """Publishes a value, as `HSET <prefix>:published:<of>:<metric> <key> <value>` does."""
        self._io.execute("HSET", self._io.keys.published(of, metric), key, str(value))

    def read_values(self, of: str, metric: str) -> list[Published]:
        """Returns all values of a metric, sorted by key. Raises: StoreUnavailable."""
        raw = self._io.execute("HGETALL", self._io.keys.published(of, metric))
        values = []
        for name, text in sorted(raw.items()):
            key, labels = _split(name.decode(errors="replace"))
            try:
                value = Quantity(text.decode(errors="replace").strip())
            except ValueError:
                log.warning("A published value is not a quantity", metric=metric, of=of, key=key)
                continue
            values.append(Published(key, labels, value))
        return values

    def list_metrics(self) -> list[tuple[str, str]]:
        """Returns the resource and name of every published metric.

        It scans all keys of the server, so it is for commands of users, not for loops.
        """
        start = self._io.keys.published("", "").removesuffix(":")
        names = (name.removeprefix(start) for name in self._io.scan(f"{start}*"))
        parts = [name.partition(":") for name in names]
        return sorted((of, metric) for of, _, metric in parts if of and metric)


def _fields(report: NodeReport) -> list[str]:
    fields = [_TIME, str(round(report.moment * 1000)), _WINDOW, f"{report.window:g}"]
    if report.usage:
        fields += [_NODE, _text(report.usage)]
    if report.scraped:
        fields += [_SCRAPED, "1"]
    for key, pod in report.pods.items():
        containers = {name: _format_amounts(used) for name, used in pod.containers.items()}
        body: dict[str, Any] = {"containers": containers}
        if pod.measured:
            body["time"], body["window"] = round(pod.measured[0] * 1000), pod.measured[1]
        if pod.metrics:
            body["metrics"] = _format_amounts(pod.metrics)
        fields += [key, json.dumps(body, separators=(",", ":"))]
    return fields


def _text(amounts: ResourceList) -> str:
    return json.dumps(_format_amounts(amounts), separators=(",", ":"))


def _format_amounts(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def _amounts(body: Mapping[str, str]) -> ResourceList:
    return {name: Quantity(text) for name, text in body.items()}


def _when(moment: int, window: float) -> tuple[datetime, float]:
    return datetime.fromtimestamp(moment / 1000, UTC), window


def _of_pod(when: tuple[datetime, float], body: Mapping[str, Any]) -> Measured:
    if "time" in body:
        when = _when(body["time"], body["window"])
    containers = {name: _amounts(used) for name, used in body["containers"].items()}
    return Measured(
        *when, total(containers.values()), containers, _amounts(body.get("metrics", {}))
    )


def build_amounts(cores: float, memory: int) -> ResourceList:
    """Returns the usage of so much CPU and of so many bytes of memory."""
    cpu = Quantity.of_nanos(round(cores * 10**9))
    return {"cpu": cpu, "memory": Quantity(f"{memory // 1024}Ki")}


def total(parts: Iterable[Mapping[str, Quantity]]) -> ResourceList:
    """Returns the sum of several amounts by name."""
    return reduce(add_amounts, parts, {})


def _split(field: str) -> tuple[str, dict[str, str]]:
    """Returns the key and the labels in a field such as `default/web-1{queue=jobs,zone=a}`."""
    key, brace, rest = field.partition("{")
    pairs = (part.partition("=") for part in rest.removesuffix("}").split(",")) if brace else ()
    return key.strip(), {name.strip(): value.strip() for name, _, value in pairs if name.strip()}
