"""What the owners of loops ask of a host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

import structlog

from kcm import errors
from kcm.loops.loop import Loop

log = structlog.get_logger("kcm.loops")


class Host(Protocol):
    """Runs loops, and work that goes on beside them."""

    @property
    def failures(self) -> Mapping[str, int]:
        """How many turns have failed, by the names of the loops that run."""
        ...

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
        """Stops the loops, and waits some seconds for them to end."""


def contain(name: str, work: Callable[[], object]) -> None:
    """Does work, and logs what it raises."""
    try:
        work()
    except errors.KcmError as error:
        log.warning("work beside the loops failed", name=name, error=str(error))
    except Exception:  # its thread has nobody to raise to
        log.exception("work beside the loops failed", name=name)
