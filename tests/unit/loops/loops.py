"""Loops that note their turns, for tests of hosts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from kcm.loops import Loop, Turn
from kcm.loops.loop import Lease

TIMEOUT = 10.0  # seconds


class NotingLoop(Loop):
    """Takes the given turns one after the other, then repeats `Turn()`. An exception is raised."""

    def __init__(
        self,
        *turns: Turn | Exception,
        name: str = "noting",
        reads: bool = False,
        lease: Lease | None = None,
        notes: list[str] | None = None,
    ) -> None:
        super().__init__(name, lease)
        self.reads = reads
        self.turns = list(turns)
        self.notes = notes if notes is not None else []
        self.patience: list[float] = []
        self._noted = threading.Condition()

    def begin(self) -> None:
        self._note("begin")

    def turn(self, patience: float) -> Turn:
        self.patience.append(patience)
        turn = self.turns.pop(0) if self.turns else Turn()
        self._note("turn")
        if isinstance(turn, Exception):
            raise turn
        return turn

    def end(self) -> None:
        self._note("end")

    def _note(self, what: str) -> None:
        with self._noted:
            self.notes.append(f"{self.name} {what}")
            self._noted.notify_all()

    def wait_for(self, *, turns: int) -> None:
        """Waits until the loop has had so many turns."""
        wanted: Callable[[], bool] = lambda: self.count("turn") >= turns  # noqa: E731 - typed
        with self._noted:
            assert self._noted.wait_for(wanted, TIMEOUT), self.notes

    def count(self, what: str) -> int:
        return self.notes.count(f"{self.name} {what}")


def names(notes: Sequence[str], what: str = "turn") -> list[str]:
    """Returns the names of the loops that noted `what`, in order."""
    return [note.removesuffix(f" {what}") for note in notes if note.endswith(f" {what}")]
