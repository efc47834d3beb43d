"""What the owners of loops ask of a host."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from kcm.loops.loop import Loop


class Host(Protocol):
    """Runs loops, and work that goes on beside them."""

    def run(self, *loops: Loop) -> None:
        """Runs these loops as well, from now on."""

    def spawn(self, name: str, work: Callable[[], None]) -> None:
        """Does work that may take long beside the loops, such as a call to a cloud.

        What it raises is logged. A host that stops does not wait for it.
        """

    def repeat(
        self, name: str, every: float, work: Callable[[], object]
    ) -> AbstractContextManager[None]:
        """Repeats `work` every so many seconds while the block runs, such as to keep a lease.

        What it raises is logged.
        """
        ...

    def list_dead(self) -> list[str]:
        """Returns the names of loops that have ended although they were not stopped: a bug."""
        ...

    def stop(self) -> None:
        """Stops the loops, the last one first, and waits for each a short time."""
