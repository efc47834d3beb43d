"""`cp.chaos`: failures at a rate, drawn from a seed.

When what happens follows from the seed alone. To which pod, node or webhook it happens follows from
the seed and from those that are there, in the order of their names.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from kcm import errors
from kcm.testing.faults.agenda import Agenda
from kcm.testing.faults.deeds import DEEDS, ChaosKind, Victims

KINDS: tuple[ChaosKind, ...] = tuple(DEEDS)
_SHORTEST, _LONGEST = 5.0, 30.0  # seconds that what lasts does so


@dataclass(frozen=True)
class ChaosEntry:
    """One entry of the log: what happened when to what, and until when."""

    at: datetime
    what: str
    target: str  # empty if there was nothing that it could happen to
    until: datetime | None = None  # None for what does not last
    note: str = ""  # why nothing happened

    def __str__(self) -> str:
        target = self.target or f"nothing ({self.note or 'there is none'})"
        until = f", until {self.until.isoformat()}" if self.until else ""
        return f"{self.at.isoformat()} {self.what}: {target}{until}"


class Chaos:
    """Failures at random while its block runs. At the end of the block, all of them are healed."""

    def __init__(
        self,
        victims: Victims,
        agenda: Agenda,
        generator: random.Random,
        *,
        rate: float,
        of: Sequence[ChaosKind] = KINDS,
        on_deed: Callable[[str], object] = str,
    ) -> None:
        """`rate` is how many failures a minute of the clock has. `on_deed` gets each in words.

        Raises ValueError.
        """
        self._on_deed = on_deed
        if rate <= 0:
            raise ValueError(f"rate={rate} lets nothing happen: use failures per minute, such as 6")
        if unknown := [kind for kind in of if kind not in DEEDS]:
            raise ValueError(f"of={unknown} is unknown: use {', '.join(KINDS)}")
        if not of:
            raise ValueError(f"of=[] lets nothing happen: use {', '.join(KINDS)}")
        self._victims = victims
        self._agenda = agenda
        self._random = generator
        self._rate = rate
        self._of = tuple(of)
        self._next: datetime | None = None  # None before the first step
        self._numbers = itertools.count()
        self._lasting: list[tuple[datetime, int, Callable[[], None]]] = []  # a heap
        self.log: list[ChaosEntry] = []

    def __enter__(self) -> Self:
        self._agenda.add(self.step)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._agenda.remove(self.step)
        self.stop()

    def step(self, now: datetime) -> datetime:
        """Does everything that is due, in order, and returns when there is more to do."""
        if self._next is None:
            self._next = now + self._draw_gap()
        while (due := self._due()) <= now:
            if self._lasting and self._lasting[0][0] == due:
                self._undo(self._lasting[0][2])  # tried again if it fails
                heapq.heappop(self._lasting)
            else:
                self._act(due)
                self._next = due + self._draw_gap()
        return due

    def stop(self) -> None:
        """Heals everything that still lasts. Raises what the store raises, after the last one."""
        failure: errors.KcmError | None = None
        while self._lasting:
            try:
                self._undo(heapq.heappop(self._lasting)[2])
            except errors.KcmError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def _due(self) -> datetime:
        assert self._next is not None
        return min(self._next, self._lasting[0][0]) if self._lasting else self._next

    def _draw_gap(self) -> timedelta:
        return timedelta(seconds=self._random.expovariate(self._rate / 60))

    def _act(self, at: datetime) -> None:
        # Each deed takes as many numbers, so that the next one does not depend on what is there.
        what, pick = self._random.choice(self._of), self._random.random()
        until = at + timedelta(seconds=self._random.uniform(_SHORTEST, _LONGEST))
        try:
            done = DEEDS[what](self._victims, pick)
        except errors.KcmError as error:  # what it happens to has just gone, or ended
            self._note(ChaosEntry(at, what, "", note=error.message))
            return
        if done is None:
            self._note(ChaosEntry(at, what, ""))
            return
        if done.undo is not None:
            heapq.heappush(self._lasting, (until, next(self._numbers), done.undo))
        self._note(ChaosEntry(at, what, done.target, until if done.undo is not None else None))

    def _note(self, entry: ChaosEntry) -> None:
        self.log.append(entry)
        self._on_deed(f"chaos: {entry}")

    @staticmethod
    def _undo(undo: Callable[[], None]) -> None:
        with suppress(errors.NotFound):  # what it happened to is gone
            undo()

    def __str__(self) -> str:
        return "\n".join(map(str, self.log)) or "nothing happened yet"
