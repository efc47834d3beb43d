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
from kcm.loops import NEVER, Loop, Turn
from kcm.manager.context.context import ControllerContext
from kcm.manager.ticks.housekeeping import loop_periods
from kcm.manager.ticks.resting import is_resting, list_followed_loops
from kcm.manager.ticks.runner import PassResult, TickRunner
from kcm.testing.control_plane.changes import Changes
from kcm.testing.control_plane.clock import PlaneClock

log = structlog.get_logger("kcm.testing")


@dataclass
class _Loop:
    name: str
    every: float  # seconds
    last: float  # when the last pass was due
    followed: str  # the loop after whose passes this one runs, "" for none
    changes: int = -1  # how many changes there had been at the last pass
    result: PassResult | None = None


class PassLoop(Loop):
    """The passes of all loops."""

    def __init__(
        self,
        context: ControllerContext,
        clock: PlaneClock,
        changes: Changes,
        is_alive: Callable[[str], bool],
    ) -> None:
        """`is_alive` reports whether something that passes wait for is a node whose heartbeats are
        certain to come.
        """
        super().__init__("kcm-passes")
        self._is_final = False
        self._io = context.io
        self._runner = TickRunner(context)
        self._clock = clock
        self._changes = changes
        self._is_alive = is_alive
        followed = list_followed_loops(context.controllers)
        self._loops = [
            _Loop(name, every, clock.moment(), followed.get(name, ""))
            for name, every in loop_periods(context.controllers).items()
        ]

    def turn(self, patience: float) -> Turn:
        """Runs the passes that are due. Raises StoreUnavailable."""
        now = self._clock.moment()
        worked = self._run_due(now)
        due = min((when for _, when in self.list_due()), default=NEVER)
        upkeep = min((p.last + p.every for p in self._loops if not p.followed), default=NEVER)
        return Turn(worked, due - now, upkeep - now)

    def expect_final(self, is_final: bool) -> None:
        """Sets whether the next turn runs passes that could find nothing, as at the end of a
        move.
        """
        self._is_final = is_final
        if is_final:
            self.wake()

    def list_due(self) -> list[tuple[str, float]]:
        """Returns the passes that may find something, each with the time when it is due."""
        return [(loop.name, loop.last + loop.every) for loop in self._loops if self._may_find(loop)]

    def _run_due(self, now: float) -> bool:
        """Runs the passes that are due at `now`, and reports whether any had something to do.

        While the time stands, those are left out that could find nothing.
        """
        all_of_them = self._is_final or not self._clock.frozen
        due = [loop for loop in self._loops if loop.last + loop.every <= now]
        worked = False
        for loop in sorted(due, key=lambda one: (one.last + one.every, one.name)):
            if (all_of_them and not loop.followed) or self._may_find(loop):
                changes = self._changes.count
                loop.result = self._run(loop.name, now)
                loop.changes = changes
                worked |= loop.result is None or loop.result.wrote
            loop.last = now  # passes that were missed are left out
        return worked

    def _may_find(self, loop: _Loop) -> bool:
        if loop.followed:
            return not is_resting(self._io, loop.name, loop.followed)
        last = loop.result
        if last is None or loop.changes != self._changes.count or last.wrote or last.waits is None:
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
