"""What is wrong, in the words of the alerts of deploy/prometheus/kcm.rules.yml."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kcm.cli.overview import Overview
from kcm.kinds.printing.durations import human_duration

KEYS_WAIT = 60.0  # seconds, as in the rule


class Alert(NamedTuple):
    """An alert by its name, which is that of its section in docs/debugging.md."""

    name: str
    what: str


def list_alerts(overview: Overview) -> Iterator[Alert]:
    """Yields what would fire if it stayed like this. What only grows or changes is not seen."""
    leases = {leader.lease for leader in overview.leaders}
    if not any(lease.startswith("dispatch:") for lease in leases):
        yield Alert("KcmDispatchStopped", "Nobody turns changes into keys.")
    if "beat" not in leases:
        yield Alert("KcmLoopsStopped", "No beat runs, so no periodic loop does.")
    for queue in overview.queues:
        if queue.depth and queue.oldest > KEYS_WAIT:
            waited = human_duration(queue.oldest)
            yield Alert("KcmKeysWait", f"A key of {queue.controller} has waited for {waited}.")
    if overview.damaged:
        yield Alert("KcmObjectsDamaged", f"{len(overview.damaged)} objects cannot be read.")
    for zone in overview.zones:
        if unhealthy := zone.nodes - zone.ready:
            named = zone.name or "(none)"
            yield Alert("KcmNodesUnhealthy", f"{unhealthy} nodes of {named} are not ready.")
