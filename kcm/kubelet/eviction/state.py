"""The change of the node's pressures over time, from one observation to the next: a pure function.

Source: synchronize in pkg/kubelet/eviction/eviction_manager.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kcm.kubelet.eviction.thresholds import Observations, Threshold, find_met


@dataclass(frozen=True)
class PressureState:
    """What the manager remembers between two checks. Times are seconds of a monotonic clock."""

    first_met: Mapping[Threshold, float] = field(default_factory=dict)
    last_seen: Mapping[str, float] = field(default_factory=dict)  # by condition
    acting: Sequence[Threshold] = ()  # those met for their whole grace periods
    conditions: frozenset[str] = frozenset()  # the types that the node reports


def advance_pressure(
    state: PressureState,
    thresholds: Sequence[Threshold],
    observed: Observations,
    *,
    now: float,
    transition_period: float,
) -> PressureState:
    """Returns the state after one more observation.

    A condition is reported for `transition_period` seconds after one of its thresholds was last
    met.
    """
    met = find_met(thresholds, observed)
    unresolved = find_met(state.acting, observed, enforce_min_reclaim=True)
    met += [threshold for threshold in unresolved if threshold not in met]
    first_met = {threshold: state.first_met.get(threshold, now) for threshold in met}
    last_seen = {**state.last_seen, **{threshold.signal.condition: now for threshold in met}}
    return PressureState(
        first_met=first_met,
        last_seen=last_seen,
        acting=[
            threshold
            for threshold, since in first_met.items()
            if now - since >= threshold.grace_period
        ],
        conditions=frozenset(
            condition for condition, at in last_seen.items() if now - at < transition_period
        ),
    )
