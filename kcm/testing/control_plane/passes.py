"""Runs the passes of periodic loops when they are due, in the place of Celery's beat.

While the time goes on, each loop runs once in each of its periods, as everywhere. While the time
stands still and is moved, a pass is left out if it could find nothing: no object has changed since
the last one, that one had nothing to do, and what it waits for (`Plan.waits`) does not come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from kcm import errors
from kcm.component.context import ControllerContext
from kcm.component.housekeeping import loop_periods
from kcm.component.resting import is_resting, list_followed_loops
from kcm.component.ticks import PassResult, TickRunner

log = structlog.get_logger("kcm.testing")

NEVER = float("inf")


@dataclass
class _Loop:
    name: str
    every: float  # seconds
    last: float  # when the last pass was due
    followed: str  # the loop after whose passes this one runs, "" for none
    changes: int = -1  # how many changes there had been at the last pass
    result: PassResult | None = None


class Passes:
    """The passes of all loops. Times are seconds since 1970."""

    def __init__(
        self, context: ControllerContext, begun: float, is_alive: Callable[[str], bool]
    ) -> None:
        """`is_alive` reports whether something that passes wait for is a node whose heartbeats are
        certain to come.
        """
        self._io = context.io
        self._runner = TickRunner(context)
        self._is_alive = is_alive
        followed = list_followed_loops(context.controllers)
        self._loops = [
            _Loop(name, every, begun, followed.get(name, ""))
            for name, every in loop_periods(context.controllers).items()
        ]

    def next_due(self, changes: int, *, all_of_them: bool) -> float:
        """Returns when the first pass is due: of all of them, or of those that may find something.

        `changes` is the number of changes of objects so far.
        """
        due = (
            loop.last + loop.every
            for loop in self._loops
            if self._is_wanted(loop, changes, all_of_them)
        )
        return min(due, default=NEVER)

    def list_due(self, changes: int) -> list[tuple[str, float]]:
        """Returns the passes that may find something, each with the time when it is due."""
        return [
            (loop.name, loop.last + loop.every)
            for loop in self._loops
            if self._may_find(loop, changes)
        ]

    def run_due(self, now: float, changes: int, *, all_of_them: bool) -> int:
        """Runs the passes that are due at `now`, and returns how many had something to do.

        Unless `all_of_them`, those are left out that could find nothing. Raises StoreUnavailable.
        """
        due = [loop for loop in self._loops if loop.last + loop.every <= now]
        worked = 0
        for loop in sorted(due, key=lambda one: (one.last + one.every, one.name)):
            if self._is_wanted(loop, changes, all_of_them):
                loop.result = self._run(loop.name, now)
                loop.changes = changes
                worked += loop.result is None or loop.result.wrote
            loop.last = now  # passes that were missed are left out
        return worked

    def _is_wanted(self, loop: _Loop, changes: int, all_of_them: bool) -> bool:
        return (all_of_them and not loop.followed) or self._may_find(loop, changes)

    def _may_find(self, loop: _Loop, changes: int) -> bool:
        if loop.followed:
            return not is_resting(self._io, loop.name, loop.followed)
        last = loop.result
        if last is None or loop.changes != changes or last.wrote or last.waits is None:
            return True
        return any(not self._is_alive(awaited) for awaited in last.waits)

    def _run(self, name: str, now: float) -> PassResult | None:
        try:
            return self._runner.run(name, now)
        except errors.Temporary:
            raise
        except Exception as error:  # noqa: BLE001 - a pass that fails must not end the others
            log.warning("a pass failed", loop=name, error=str(error))
            return None
