"""Limits of time for calls that mostly end long before, such as those of webhooks.

`asyncio.timeout` has a timer of its own for each call, which stays in the event loop's heap until
it would be due: that is a fifth of what a call costs. Here one timer serves all of them.
"""

from __future__ import annotations

import asyncio
from types import TracebackType


class TimeLimits:
    """The limits of an event loop, which it belongs to from the first one on."""

    def __init__(self) -> None:
        self._running: set[_TimeLimit] = set()
        self._timer: asyncio.TimerHandle | None = None

    def within(self, seconds: float) -> _TimeLimit:
        """Returns a context that raises TimeoutError if the task has not left it after that time.

        As with asyncio.timeout, the task is cancelled then.
        """
        return _TimeLimit(self, seconds)

    def begin(self, limit: _TimeLimit, loop: asyncio.AbstractEventLoop) -> None:
        """Notes a limit that was entered."""
        self._running.add(limit)
        if self._timer is None or self._timer.when() > limit.due:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_at(limit.due, self._look, loop)

    def end(self, limit: _TimeLimit) -> None:
        """Forgets a limit that was left."""
        self._running.discard(limit)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for limit in [one for one in self._running if one.due <= now]:
            self.end(limit)
            limit.expire()
        soonest = min((limit.due for limit in self._running), default=None)
        self._timer = None if soonest is None else loop.call_at(soonest, self._look, loop)


class _TimeLimit:
    """The limit of one task."""

    __slots__ = ("_cancelling", "_is_expired", "_limits", "_seconds", "_task", "due")

    def __init__(self, limits: TimeLimits, seconds: float) -> None:
        self.due = 0.0  # by the clock of the event loop
        self._limits = limits
        self._seconds = seconds
        self._is_expired = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        loop = task.get_loop()
        self._task, self._cancelling = task, task.cancelling()
        self.due = loop.time() + self._seconds
        self._limits.begin(self, loop)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._limits.end(self)
        if not self._is_expired:
            return
        # Somebody else may have cancelled the task as well: then it is to end.
        is_ours = self._task.uncancel() <= self._cancelling
        if is_ours and isinstance(error, asyncio.CancelledError):
            raise TimeoutError from error

    def expire(self) -> None:
        """Cancels the task."""
        self._is_expired = True
        self._task.cancel()
