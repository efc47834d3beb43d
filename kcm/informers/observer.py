"""The callbacks by which informers report what metrics count. The default counts nothing.

Calls come from the watch thread and from handlers' threads, so an implementation must be
thread-safe and quick, and must not raise.
"""

from __future__ import annotations

from typing import Literal

FailedStep = Literal["list", "watch", "resync", "read"]


class Observer:
    """The callbacks of informers. Override those to count; `kind` is a resource's name."""

    def on_list(self, kind: str, items: int, seconds: float) -> None:
        """Counts a list of a kind, which replaced the content of its cache."""

    def on_watch(self, kind: str, entries: int) -> None:
        """Counts watch entries of a kind that were applied."""

    def on_failure(self, kind: str, step: FailedStep, error: Exception) -> None:
        """Counts a failed step, which is tried again; `kind` is "" for the read of all kinds."""

    def on_handler_crash(self, kind: str, handler: str, error: Exception) -> None:
        """Counts a handler that raised. It does not get this notification again, but the next
        one.
        """

    def on_handler_overflow(self, kind: str, handler: str) -> None:
        """Counts a handler that is so slow that its bounded queue is full."""
