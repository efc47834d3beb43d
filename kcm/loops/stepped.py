"""The host of a control plane inside a test: one thread takes the turns, in the order of a list.

Guarantees: the same list, time and objects give the same turns. A loop that worked wakes those
after it, so the list is the way that a change takes. Nothing waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from kcm.loops.host import contain
from kcm.loops.loop import NEVER, Loop, Turn


@dataclass
class _Stepped:
    loop: Loop
    has_begun: bool = False
    due: float = NEVER
    upkeep: float = NEVER


class StepHost:
    """Takes turns when it is told to. Times are seconds since 1970."""

    def __init__(self, now: Callable[[], float]) -> None:
        """`now` returns the time, which may stand."""
        self._now = now
        self._stepped: list[_Stepped] = []
        self._has_news = True  # whether there may be something to read

    def run(self, *loops: Loop) -> None:
        self._stepped += [_Stepped(loop) for loop in loops]

    def arrange(self, *loops: Loop) -> None:
        """Puts these loops last, in this order: that of the way that a change takes."""
        place = {loop: number for number, loop in enumerate(loops)}
        self._stepped.sort(key=lambda stepped: place.get(stepped.loop, -1))

    def turn(self, *, upkeep: bool) -> bool:
        """Takes one turn of each loop that was woken, is due, or reads what the last turn may have
        written. Reports whether any worked.

        Without `upkeep`, loops that only keep up what others expect have no turn. Raises what the
        turns raise.
        """
        reads, self._has_news = self._has_news, False
        for stepped in self._stepped:
            if self._is_wanted(stepped, reads=reads, upkeep=upkeep) and self._step(stepped).worked:
                self._has_news = True
                self._wake_after(stepped)
        return self._has_news

    def step(self, loop: Loop) -> Turn:
        """Takes one turn of this loop out of its order."""
        return self._step(self._stepped_of(loop))

    def due_of(self, loop: Loop) -> float:
        """Returns when the next turn of this loop is due, upkeep apart."""
        return self._stepped_of(loop).due

    def _stepped_of(self, loop: Loop) -> _Stepped:
        return next(stepped for stepped in self._stepped if stepped.loop is loop)

    def next_due(self, *, upkeep: bool) -> float:
        """Returns when the next turn is due, NEVER if none is unless a loop is woken."""
        due = (min(s.due, s.upkeep) if upkeep else s.due for s in self._stepped)
        return min(due, default=NEVER)

    def _is_wanted(self, stepped: _Stepped, *, reads: bool, upkeep: bool) -> bool:
        loop = stepped.loop
        if loop.lease is not None and not loop.lease.held:
            return False
        due = min(stepped.due, stepped.upkeep) if upkeep else stepped.due
        return (reads and loop.reads) or loop.woken.is_set() or due <= self._now()

    def _step(self, stepped: _Stepped) -> Turn:
        loop = stepped.loop
        loop.woken.clear()
        try:
            if not stepped.has_begun:
                loop.begin()
                stepped.has_begun = True
            turn = loop.turn(0.0)
        except BaseException:
            stepped.has_begun, self._has_news = False, True
            loop.wake()
            raise
        now = self._now()
        stepped.due, stepped.upkeep = now + turn.due_in, now + turn.upkeep_in
        return turn

    def _wake_after(self, stepped: _Stepped) -> None:
        for later in self._stepped[self._stepped.index(stepped) + 1 :]:
            later.loop.wake()

    def spawn(self, name: str, work: Callable[[], None]) -> None:
        contain(name, work)

    @contextmanager
    def repeat(self, name: str, every: float, work: Callable[[], object]) -> Iterator[None]:
        """Repeats nothing: the time does not go on while the block runs."""
        yield

    @property
    def failures(self) -> Mapping[str, int]:
        return {}

    def list_dead(self) -> list[str]:
        return []

    def stop(self) -> None:
        for stepped in reversed(self._stepped):
            contain(stepped.loop.name, stepped.loop.end)
        self._stepped = []
