"""Where informers report what metrics count. The default counts nothing.

Calls come from the watch thread and from handlers' threads, so an
implementation is thread-safe, quick, and never raises.
"""

from __future__ import annotations

from typing import Literal

FailedStep = Literal["list", "watch", "resync", "read"]


class Observer:
    """Override what you count. `kind` is a resource's name, such as `replicasets.apps`."""

    def on_list(self, kind: str, items: int, seconds: float) -> None:
        """A kind was listed and its cache replaced."""

    def on_watch(self, kind: str, entries: int) -> None:
        """So many entries of a kind were applied."""

    def on_failure(self, kind: str, step: FailedStep, error: Exception) -> None:
        """A step failed and will be tried again; `kind` is "" for the read of all kinds."""

    def on_handler_crash(self, kind: str, handler: str, error: Exception) -> None:
        """A handler raised; its notification is lost to it, the next one comes."""

    def on_handler_overflow(self, kind: str, handler: str) -> None:
        """A handler is so slow that its bounded queue is full."""
