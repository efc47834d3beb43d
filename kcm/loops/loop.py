"""The shape of everything that runs for long: a loop has no thread and no clock of its own.

A host calls `turn` whenever the loop was woken or is due. In a process of kcm each loop has a
thread, and in a control plane inside a test one thread takes the turns of all loops in the order of
one list, so that both run the same code. See docs/designs/0047-one-shape-of-loop.md.

Modelled after etcd's raft/rawnode.go (`Tick`, `Ready`, `Advance`) and the host in its node.go.
"""

from __future__ import annotations

import threading
from typing import NamedTuple, Protocol

NEVER = float("inf")


class Turn(NamedTuple):
    """The result of one turn. Times are in seconds from its end."""

    # Whether something changed that other loops may have to work on: objects, caches, queues.
    worked: bool = False
    # When the next turn is due although nothing wakes the loop. 0 is at once, NEVER only if woken.
    due_in: float = NEVER
    # When the next turn is due that keeps up what others expect, such as a heartbeat, or a look for
    # what nobody tells of. It changes nothing by itself, so a clock that stands is not moved to it.
    upkeep_in: float = NEVER
    # How long a loop that reads is left alone, so that what comes in a burst shares the next read.
    # A wake ends it.
    rest: float = 0.0

    @property
    def soonest(self) -> float:
        """When the next turn is due for either reason."""
        return min(self.due_in, self.upkeep_in)


class Lease(Protocol):
    """A right to work that another process may have instead."""

    @property
    def held(self) -> bool:
        """Whether this process certainly has it."""
        ...


class Loop:
    """Work that goes on until its host stops. A host calls all methods but `wake` in one thread."""

    reads = False
    """Whether a turn reads Redis, and waits there up to its patience for something to read.

    Such a loop has a turn after each other one, since what it reads does not wake it.
    """

    gathers = 0.0
    """How many seconds pass from a wake to the turn, so that what comes in a burst shares one."""

    def __init__(self, name: str, lease: Lease | None = None) -> None:
        """`name` is that of the thread, in logs and in metrics. With a lease, there are turns only
        while it is held.
        """
        self.name = name
        self.lease = lease
        self.woken = threading.Event()
        self.woken.set()  # the first turn is due at once
        self.in_turn = False  # set by the host

    @property
    def busy(self) -> bool:
        """Whether it has a turn now, or was woken for one."""
        return self.in_turn or self.woken.is_set()

    def wake(self) -> None:
        """Makes the next turn due at once. Any thread may call it."""
        self.woken.set()

    def begin(self) -> None:
        """Prepares for turns: before the first one, and again after a turn that failed, or without
        the lease.
        """

    def turn(self, patience: float) -> Turn:
        """Does what is due now. May wait up to `patience` seconds in Redis if the loop `reads`.

        What it raises is logged, and the loop goes on after a back-off; after Fenced, once the
        lease is held again.
        """
        raise NotImplementedError

    def end(self) -> None:
        """Finishes after the last turn, such as by releasing a lease. What it raises is logged."""
