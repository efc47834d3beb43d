"""`Explanation`: why an object is as it is, as typed fields and as a text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kcm.testing.history.diff import printable
from kcm.testing.history.snapshot import Item
from kcm.testing.history.syncs import Refused, Sync
from kcm.testing.history.writes import History


@dataclass(frozen=True)
class Condition:
    """A condition in an object's status."""

    type: str
    status: str
    reason: str = ""
    message: str = ""

    def __str__(self) -> str:
        why = ": ".join(filter(None, (self.reason, self.message)))
        return f"{self.type}={self.status}" + (f"  {why}" if why else "")


@dataclass(frozen=True)
class EventLine:
    """An Event about an object."""

    type: str
    reason: str
    message: str
    source: str
    count: int
    time: str  # of the last time, as the Event has it

    def __str__(self) -> str:
        times = f" x{self.count}" if self.count > 1 else ""
        return f"{self.time}  {self.type} {self.reason}{times} by {self.source}: {self.message}"


@dataclass(frozen=True)
class Related:
    """An owner or a dependent, with its state, what it waits for, and its own dependents."""

    title: str  # kind and name
    state: str
    waits: tuple[str, ...] = ()
    dependents: tuple[Related, ...] = ()

    def lines(self, indent: str = "") -> Iterator[str]:
        """Yields the lines of the tree."""
        yield f"{indent}{self.title}: {self.state}"
        for wait in self.waits:
            yield f"{indent}  ! {wait}"
        for dependent in self.dependents:
            yield from dependent.lines(f"{indent}  ")


@dataclass(frozen=True)
class Explanation:
    """Why an object is as it is. `obj` is None if it does not exist.

    `waits` says what it and its dependents wait for, `syncs` has the last sync of each controller
    about its key, and `refused` the last writes of it that the API server refused, and requests
    about it, or about any object of its kind and namespace, that authorization or a fault refused.
    """

    name: str  # as it was asked for, like deployment/web
    namespace: str
    obj: Item | None
    state: str
    waits: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    finalizers: tuple[str, ...] = ()
    owners: tuple[Related, ...] = ()
    dependents: tuple[Related, ...] = ()
    events: tuple[EventLine, ...] = ()
    syncs: tuple[Sync, ...] = ()
    refused: tuple[Refused, ...] = ()
    history: History = field(default_factory=lambda: History(()))

    @property
    def exists(self) -> bool:
        """Whether the object exists."""
        return self.obj is not None

    def __str__(self) -> str:
        place = f" in {self.namespace}" if self.namespace else ""
        lines = [f"{self.name}{place}: {self.state}"]
        lines += _section("waits", self.waits)
        lines += _section("conditions", self.conditions)
        lines += _section("finalizers", self.finalizers)
        lines += _section("owned by", [line for one in self.owners for line in one.lines()])
        lines += _section("owns", [line for one in self.dependents for line in one.lines()])
        lines += _section("events", self.events)
        lines += _section("last syncs", self.syncs)
        lines += _section("refused", self.refused)
        return "\n".join([*map(printable, lines), "  last writes:", *_indented(self.history)])


def _section(title: str, entries: Sequence[object]) -> Iterator[str]:
    if entries:
        yield f"  {title}:"
        for entry in entries:
            yield from (f"    {line}" for line in str(entry).splitlines())


def _indented(history: History) -> Iterator[str]:
    return (f"    {line}" for line in str(history).split("\n"))
