"""Where informers report what metrics count. The default counts nothing.

Calls come from the watch thread and from handlers' threads, so an implementation must be
thread-safe and quick, and must not raise.
"""

from __future__ import annotations

from typing import Literal

FailedStep = Literal["list", "watch", "resync", "read"]


class Observer:
    """The callbacks of informers. Override those that you count; `kind` is a resource's name."""

    def on_list(self, kind: str, items: int, seconds: float) -> None:
        """A kind was listed and its cache replaced."""

    def on_watch(self, kind: str, entries: int) -> None:
        """This number of entries of a kind was applied."""

    def on_failure(self, kind: str, step: FailedStep, error: Exception) -> None:
        """A step failed and will be tried again; `kind` is "" for the read of all kinds."""

    def on_handler_crash(self, kind: str, handler: str, error: Exception) -> None:
        """A handler raised. Its notification is lost to it, and the next one comes."""

    def on_handler_overflow(self, kind: str, handler: str) -> None:
        """A handler is so slow that its bounded queue is full."""
