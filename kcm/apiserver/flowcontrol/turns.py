"""`Turns`: whose short request the event loop works on next.

Short requests run in the event loop, which can compute for one at a time. Seats do not order them:
there are hundreds of seats, and a few dozen clients keep the loop busy. So at most `MOST` of them
are at work together, and the others take turns: priority levels in proportion to their shares, and
within a level all flows alike, by the seconds that they had. An exempt level never waits for a seat
but takes turns as well, so that nobody who floods the server, whoever it is, delays the heartbeats
of nodes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from kcm.apiserver.flowcontrol.schemas import Flow

MOST = 16  # fewer leave the loop idle while all of them wait for Redis
_ESTIMATED_SECONDS = 0.001  # that a request computes, until it has shown how long it did
T = TypeVar("T")


@dataclass(eq=False, slots=True)
class _FlowTurns:
    """The requests of one flow that wait for a turn."""

    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)
    virtual_start: float = 0.0  # of its next turn: the seconds that it had


@dataclass(eq=False, slots=True)
class _LevelTurns:
    """The flows of a level that wait."""

    flows: dict[Flow, _FlowTurns] = field(default_factory=dict)
    virtual_start: float = 0.0  # of its next turn: the seconds that it had, by its weight
    progress: float = 0.0  # the virtual start of the flow served last
    waiting: int = 0  # requests

    def next_flow(self) -> tuple[Flow, _FlowTurns]:
        """Returns the flow that had least."""
        return min(self.flows.items(), key=lambda item: item[1].virtual_start)


class Turns:
    """Turns in the event loop. Only its thread may use it."""

    def __init__(self, weigh: Callable[[str], int], most: int = MOST) -> None:
        """`weigh` returns the weight of a priority level by its name, 1 or more."""
        self._weigh = weigh
        self._free = most
        self._levels: dict[str, _LevelTurns] = {}
        self._progress = 0.0  # the virtual start of the level served last

    @property
    def waiting(self) -> dict[str, int]:
        """Returns how many requests wait for a turn, by level. Any thread may ask."""
        return {name: level.waiting for name, level in list(self._levels.items())}

    async def take(self, flow: Flow) -> Turn:
        """Returns a turn, which `end` takes back, after waiting for it."""
        level = self._levels.get(flow.level) or self._levels.setdefault(flow.level, _LevelTurns())
        if not level.flows:
            level.virtual_start = max(level.virtual_start, self._progress)
        own = level.flows.get(flow) or _FlowTurns(virtual_start=level.progress)
        if self._free > 0:  # nobody waits
            self._free -= 1
            self._charge(flow.level, level, own)
        else:
            await self._wait(level, flow, own)
        return Turn(self, flow.level, level, own)

    async def _wait(self, level: _LevelTurns, flow: Flow, own: _FlowTurns) -> None:
        level.flows[flow] = own
        may_start: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        own.waiting.append(may_start)
        level.waiting += 1
        try:
            await may_start
        except asyncio.CancelledError:
            if may_start in own.waiting:
                level.waiting -= 1
                own.waiting.remove(may_start)
                if not own.waiting:
                    del level.flows[flow]
            elif not may_start.cancelled():  # it was given a turn a moment ago
                self.release()
            raise

    def end(self, turn: Turn) -> None:
        """Takes a turn back, and charges the seconds that it took."""
        spent = turn.seconds - _ESTIMATED_SECONDS
        turn.level.virtual_start += spent / self._weigh(turn.name)
        turn.flow.virtual_start += spent
        self.release()

    def release(self) -> None:
        """Gives a turn back, and to those who wait."""
        self._free += 1
        while self._free > 0 and any(level.waiting for level in self._levels.values()):
            self._free -= 1
            self._start_next()

    def resume(self) -> None:
        """Takes a turn back that was released for a while, at once."""
        self._free -= 1

    def _start_next(self) -> None:
        waiting = ((name, level) for name, level in self._levels.items() if level.waiting)
        name, level = min(waiting, key=lambda item: item[1].virtual_start)
        flow, own = level.next_flow()
        may_start = own.waiting.popleft()
        level.waiting -= 1
        if not own.waiting:
            del level.flows[flow]
        self._charge(name, level, own)
        if may_start.done():  # cancelled
            self._free += 1
        else:
            may_start.set_result(None)

    def _charge(self, name: str, level: _LevelTurns, own: _FlowTurns) -> None:
        self._progress = max(self._progress, level.virtual_start)
        level.progress = max(level.progress, own.virtual_start)
        level.virtual_start += _ESTIMATED_SECONDS / self._weigh(name)
        own.virtual_start += _ESTIMATED_SECONDS


@dataclass(eq=False, slots=True)
class Turn:
    """One turn, which counts the seconds that it takes, of a level by its name and a flow."""

    turns: Turns
    name: str
    level: _LevelTurns
    flow: _FlowTurns
    seconds: float = 0.0

    async def leave_for(self, work: Awaitable[T]) -> T:
        """Waits for work outside the event loop; others have the turn in the meantime."""
        self.turns.release()
        try:
            return await work
        finally:
            self.turns.resume()
