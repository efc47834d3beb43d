"""From observations to pressures and to what has to be reclaimed, over time: pure.

Source: synchronize in pkg/kubelet/eviction/eviction_manager.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kcm.kubelet.eviction.thresholds import Observations, Threshold, met


@dataclass(frozen=True)
class Pressure:
    """What is remembered from look to look. Times are seconds of a monotonic clock."""

    first_seen: Mapping[Threshold, float] = field(default_factory=dict)
    last_seen: Mapping[str, float] = field(default_factory=dict)  # by condition
    acting: Sequence[Threshold] = ()  # met for as long as their grace
    conditions: frozenset[str] = frozenset()


def step(
    before: Pressure,
    thresholds: Sequence[Threshold],
    observed: Observations,
    now: float,
    transition: float,
) -> Pressure:
    """After one more look. A condition stays for `transition` seconds after it was last seen."""
    found = met(thresholds, observed)
    unresolved = met(before.acting, observed, reclaimed=True)
    found += [one for one in unresolved if one not in found]
    first = {one: before.first_seen.get(one, now) for one in found}
    last = {**before.last_seen, **{one.signal.condition: now for one in found}}
    return Pressure(
        first_seen=first,
        last_seen=last,
        acting=[one for one, since in first.items() if now - since >= one.grace],
        conditions=frozenset(kind for kind, at in last.items() if now - at < transition),
    )
