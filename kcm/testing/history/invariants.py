"""Invariants: conditions that no write may fulfil."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from kcm.testing.history.writes import History, Write

_SHOWN = 8  # writes before the one that broke an invariant


class InvariantError(AssertionError):
    """Something happened that must never happen."""


class Checks(Protocol):
    """What an invariant needs of the recorder."""

    def check(self) -> None:
        """Checks all invariants with the writes since the last time. Raises AssertionError."""

    def drop(self, invariant: Invariant) -> None:
        """Stops checking an invariant."""


class Invariant:
    """A condition that must hold for no write.

    It is checked with each write after its beginning, in the store's order, whenever the control
    plane waits or stops, and at the end of the test. Used with `with`, at the end of the block,
    where it ends. It fails once.
    """

    def __init__(
        self, holds: Callable[[Write], object], what: str, checks: Checks, since: int
    ) -> None:
        self.what = what
        self.since = since  # the resourceVersion of the last write that was checked
        self._holds = holds
        self._checks = checks

    def find_broken(self, history: History) -> Write | None:
        """Returns the first write after `since` that fulfils the condition."""
        for write in history:
            if write.resource_version <= self.since:
                continue
            self.since = write.resource_version
            if self._holds(write):
                return write
        return None

    def explain(self, broken: Write, history: History) -> str:
        """Returns why it failed: the write, and the writes before it."""
        before = [one for one in history if one.resource_version < broken.resource_version]
        context = History(before[-_SHOWN:])
        return f"this must not happen: {self.what}\n{broken}\nbefore it:\n{context}"

    def stop(self) -> None:
        """Checks it for the last time. Raises AssertionError."""
        try:
            self._checks.check()
        finally:
            self._checks.drop(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:  # what failed first is what is told
            self._checks.drop(self)
        else:
            self.stop()
