"""Limits a recommendation by stabilization windows, scaling rates, and least and most replicas."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from kcm.api.autoscaling_v2 import (
    HorizontalPodAutoscalerBehavior,
    HPAScalingPolicy,
    HPAScalingRules,
)
from kcm.controllers.horizontalpodautoscaling.history import (
    History,
    Marks,
    ReplicaMark,
    sum_changes,
)

_FACTOR, _LEAST = 2, 4  # without a behavior a scale may double, and may always become 4
_FASTER_UP = "the desired replica count is increasing faster than the maximum scale rate"
_FASTER_DOWN = "the desired replica count is decreasing faster than the maximum scale rate"
_TOO_MANY = "the desired replica count is more than the maximum replica count"
_TOO_FEW = "the desired replica count is less than the minimum replica count"
_HIGHER = (
    "recent recommendations were higher than current one, applying the highest recent "
    "recommendation"
)
_LOWER = (
    "recent recommendations were lower than current one, applying the lowest recent recommendation"
)


@dataclass(frozen=True)
class Bounds:
    """The replicas that a target has now (`current`), and the least and most that it may have."""

    current: int
    low: int
    high: int


@dataclass(frozen=True)
class ScalingDecision:
    """The number of replicas to scale to, and the content of the conditions about it."""

    replicas: int
    able: tuple[str, str]  # reason and message of AbleToScale
    limit: tuple[str, str]  # reason and message of ScalingLimited
    limited: bool  # whether ScalingLimited holds


@dataclass(frozen=True)
class Normalizer:
    """Limits the recommendations of one autoscaler by its behavior, or by upstream's default
    limits.
    """

    behavior: HorizontalPodAutoscalerBehavior | None
    downscale_window: timedelta  # the window if the behavior has none
    now: datetime

    @property
    def longest_window(self) -> timedelta:
        """The time for which recommendations have to be remembered."""
        return max(self._up_window, self._down_window)

    @property
    def periods(self) -> tuple[timedelta, timedelta]:
        """The times for which additions and removals of replicas have to be remembered."""
        return _longest_period(self._up), _longest_period(self._down)

    def decide(self, wanted: int, bounds: Bounds, history: History) -> ScalingDecision:
        """Returns the decision for a number of replicas that the metrics recommend."""
        stabilized, held = self._stabilize(wanted, bounds.current, history.recommendations)
        if self.behavior is None:
            replicas, limit = _limit_by_default_rates(stabilized, bounds)
        else:
            replicas, limit = self._limit_by_rates(stabilized, bounds, history)
        able = held if stabilized != wanted else _READY
        return ScalingDecision(replicas, able, limit, limited=replicas != stabilized)

    @property
    def _up(self) -> HPAScalingRules:
        return (self.behavior and self.behavior.scale_up) or HPAScalingRules()

    @property
    def _down(self) -> HPAScalingRules:
        return (self.behavior and self.behavior.scale_down) or HPAScalingRules()

    @property
    def _up_window(self) -> timedelta:
        return timedelta(seconds=self._up.stabilization_window_seconds or 0)

    @property
    def _down_window(self) -> timedelta:
        seconds = self._down.stabilization_window_seconds
        return self.downscale_window if seconds is None else timedelta(seconds=seconds)

    # --- windows

    def _stabilize(self, wanted: int, current: int, recent: Marks) -> tuple[int, tuple[str, str]]:
        """Returns the replicas that the recommendations within the windows allow, with reason and
        message.
        """
        highest = max((wanted, *_within(recent, self.now - self._down_window)))
        if self.behavior is None:
            return highest, ("ScaleDownStabilized", _HIGHER)
        lowest = min((wanted, *_within(recent, self.now - self._up_window)))
        words = ("ScaleUpStabilized", _LOWER)
        if wanted < current:
            words = ("ScaleDownStabilized", _HIGHER)
        return min(max(current, lowest), highest), words

    # --- rates

    def _limit_by_rates(
        self, wanted: int, bounds: Bounds, history: History
    ) -> tuple[int, tuple[str, str]]:
        if wanted > bounds.current:
            limit = max(bounds.current, self._up_limit(bounds.current, history))
            most, words = bounds.high, ("TooManyReplicas", _TOO_MANY)
            if most > limit:
                most, words = limit, ("ScaleUpLimit", _FASTER_UP)
            if wanted > most:
                return most, words
        elif wanted < bounds.current:
            limit = min(bounds.current, self._down_limit(bounds.current, history))
            least, words = bounds.low, ("TooFewReplicas", _TOO_FEW)
            if least < limit:
                least, words = limit, ("ScaleDownLimit", _FASTER_DOWN)
            if wanted < least:
                return least, words
        return wanted, _WITHIN

    def _up_limit(self, current: int, history: History) -> int:
        rules = self._up
        if rules.select_policy == "Disabled":
            return current
        proposed = [
            math.ceil(start * (1 + policy.value / 100))
            if policy.type == "Percent"
            else start + policy.value
            for policy, start in self._starts(rules, current, history)
        ]
        return min(proposed) if rules.select_policy == "Min" else max(proposed)

    def _down_limit(self, current: int, history: History) -> int:
        rules = self._down
        if rules.select_policy == "Disabled":
            return current
        proposed = [
            int(start * (1 - policy.value / 100))
            if policy.type == "Percent"
            else start - policy.value
            for policy, start in self._starts(rules, current, history)
        ]
        return max(proposed) if rules.select_policy == "Min" else min(proposed)

    def _starts(
        self, rules: HPAScalingRules, current: int, history: History
    ) -> Iterable[tuple[HPAScalingPolicy, int]]:
        """Yields each policy, with the number of replicas at the beginning of its present
        period.
        """
        for policy in rules.policies or (_ANY,):
            added = sum_changes(history.up, policy.period_seconds, self.now)
            taken = sum_changes(history.down, policy.period_seconds, self.now)
            yield policy, current - added + taken


_READY = ("ReadyForNewScale", "recommended size matches current size")
_WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")
# Defaulting sets policies. If there are none all the same, nothing limits the change.
_ANY = HPAScalingPolicy(type="Pods", value=2**31 - 1, period_seconds=1)


def _limit_by_default_rates(wanted: int, bounds: Bounds) -> tuple[int, tuple[str, str]]:
    limit = max(_FACTOR * bounds.current, _LEAST)
    most, words = bounds.high, ("TooManyReplicas", _TOO_MANY)
    if most > limit:
        most, words = limit, ("ScaleUpLimit", _FASTER_UP)
    if wanted < bounds.low:
        return bounds.low, ("TooFewReplicas", _TOO_FEW)
    return (most, words) if wanted > most else (wanted, _WITHIN)


def _within(marks: Iterable[ReplicaMark], start: datetime) -> list[int]:
    return [mark.replicas for mark in marks if mark.moment > start.timestamp()]


def _longest_period(rules: HPAScalingRules) -> timedelta:
    return timedelta(seconds=max((p.period_seconds for p in rules.policies or ()), default=0))
