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
        """Counts a list of a kind, after which its cache was replaced."""

    def on_watch(self, kind: str, entries: int) -> None:
        """Counts entries of a kind that were applied."""

    def on_failure(self, kind: str, step: FailedStep, error: Exception) -> None:
        """Counts a failed step, which is tried again; `kind` is "" for the read of all kinds."""

    def on_handler_crash(self, kind: str, handler: str, error: Exception) -> None:
        """Counts a handler that raised. Its notification is lost to it, and the next one comes."""

    def on_handler_overflow(self, kind: str, handler: str) -> None:
        """Counts a handler so slow that its bounded queue is full."""
