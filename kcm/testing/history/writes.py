"""`Write`, one write as a tester sees it, and `History`, writes in the store's order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, overload

from kcm.store.watch import ChangeType
from kcm.store.writes.observing import Author
from kcm.testing.history.authors import changed_manager, complete
from kcm.testing.history.diff import Change, diff, printable
from kcm.testing.history.journal import Entry

_MOST_CHANGES = 8  # of one write in a timeline
_MINOR = (  # ends of paths that a timeline leaves out, since another change says the same
    ".lastTransitionTime",
    ".lastUpdateTime",
    ".lastProbeTime",
    ".lastHeartbeatTime",
    "].type",
    "].name",
    "ID",
)


@dataclass(frozen=True)
class Mark:
    """A line that somebody put into the timeline, such as a note or a fault.

    `after` is the resourceVersion of the last write before it.
    """

    text: str
    kind: str
    time: datetime
    after: int

    def __str__(self) -> str:
        return f"{_clock(self.time)}  ── {printable(self.kind)}: {printable(self.text)}"


class Write:
    """One write. `old` and `new` are the whole object before and after it."""

    def __init__(self, entry: Entry, before: bytes | None) -> None:
        self._entry = entry
        self._before = before

    @property
    def resource_version(self) -> int:
        """The resourceVersion that the write got."""
        return self._entry.resource_version

    @property
    def time(self) -> datetime:
        """When it was made, by the control plane's clock."""
        return self._entry.time

    @property
    def event(self) -> ChangeType:
        """What a watch shows: ADDED, MODIFIED or DELETED."""
        return self._entry.event

    @cached_property
    def verb(self) -> str:
        """What was asked for: create, update, patch, delete and so on.

        A controller's change is an update, or a delete if it sets the deletion timestamp.
        """
        if self.author.verb:
            return self.author.verb
        if self.event == "ADDED":
            return "create"
        marked = _deletion(self.last) and not _deletion(self.old or {})
        return "delete" if self.event == "DELETED" or marked else "update"

    @property
    def subresource(self) -> str:
        """The subresource that was written, such as `status`, or an empty text."""
        return self._entry.part or self.author.subresource

    @property
    def resource(self) -> str:
        """The plural name of the kind with its group, such as `pods` or `deployments.apps`."""
        return self._entry.resource

    @property
    def kind(self) -> str:
        """The kind, such as `Pod`."""
        return str(self.last.get("kind", ""))

    @property
    def namespace(self) -> str:
        """The namespace of the object, or an empty text."""
        return str(self._metadata.get("namespace", ""))

    @property
    def name(self) -> str:
        """The name of the object."""
        return str(self._metadata.get("name", ""))

    @property
    def uid(self) -> str:
        """The uid of the object."""
        return str(self._metadata.get("uid", ""))

    @property
    def _metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = self.last.get("metadata") or {}
        return metadata

    @cached_property
    def author(self) -> Author:
        """Who made it."""
        return complete(self._entry.author, self.resource, self.last)

    @property
    def manager(self) -> str:
        """The field manager for which fields changed hands, or an empty text."""
        return changed_manager(self.old or {}, self.last)

    @cached_property
    def last(self) -> dict[str, Any]:
        """The state that the write stored; of a deletion, the last one."""
        return self._entry.load()

    @cached_property
    def old(self) -> dict[str, Any] | None:
        """The object before the write, None if there was none."""
        if self._before is None:
            return None
        loaded: dict[str, Any] = json.loads(self._before)
        return loaded

    @property
    def new(self) -> dict[str, Any] | None:
        """The object after the write, None if it is gone."""
        return None if self.event == "DELETED" else self.last

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """The changed fields: all of a new object, and of a deletion those of the last state."""
        return diff(self.old, self.last)

    @property
    def told(self) -> str:
        """What an Event says; an empty text for a write of another kind."""
        if self.resource != "events":
            return ""
        event = self.last
        about = event.get("involvedObject") or {}
        text = f"{event.get('type')} {event.get('reason')} about {about.get('kind')} "
        return f"{text}{about.get('name')}: {event.get('message') or event.get('note')}"

    @property
    def target(self) -> str:
        """The object and the subresource, like `pods/web-1/status`."""
        name = printable(f"{self.resource.partition('.')[0]}/{self.name}")
        return f"{name}/{self.subresource}" if self.subresource else name

    def __eq__(self, other: object) -> bool:
        """Writes of two runs are equal if everything is: time, author, and both states."""
        if not isinstance(other, Write):
            return NotImplemented
        return (self._entry, self._before) == (other._entry, other._before)

    def __hash__(self) -> int:
        return hash(self.resource_version)

    def __repr__(self) -> str:
        return f"<Write {self.resource_version}: {self.verb} {self.target} in {self.namespace!r}>"

    def __str__(self) -> str:
        """Returns the lines of the timeline: the write, and what it changed."""
        place = f" in {self.namespace}" if self.namespace else ""
        gone = ", and it is gone" if self.event == "DELETED" else ""
        new = ", which is new" if self.event == "ADDED" and self.verb != "create" else ""
        head = (
            f"{_clock(self.time)}  {self.resource_version:>6}  {self.verb:<6} "
            f"{self.target}{place}{gone}{new}  by {describe(self.author)}"
        )
        if self.told:
            return f"{head}\n{'':>16}{printable(self.told)}"
        if self.event == "ADDED":
            return head
        changes = [each for each in self.changes if not each.path.endswith(_MINOR)] or self.changes
        shown = [f"{'':>16}{change}" for change in changes[:_MOST_CHANGES]]
        more = len(changes) - len(shown)
        if more > 0:
            shown.append(f"{'':>16}and {more} more changes")
        return "\n".join([head, *shown])


def describe(author: Author) -> str:
    """Returns an author in words."""
    if author.kind == "user":
        return printable(f"{author.name} ({author.agent})" if author.agent else author.name)
    keyed = author.key not in {"", author.name}
    return printable(f"{author.name} for {author.key}" if keyed else author.name)


def _deletion(obj: dict[str, Any]) -> bool:
    return bool((obj.get("metadata") or {}).get("deletionTimestamp"))


def _clock(time: datetime) -> str:
    return f"{time:%H:%M:%S}.{time.microsecond // 1000:03}"


class History(Sequence[Write]):
    """Writes in the store's order, with the marks between them.

    `dropped` is the number of writes of the control plane that are no longer kept and may be
    missing, `gaps` are the kinds of which writes may be missing for another reason. As a text it is
    a timeline.
    """

    def __init__(
        self,
        writes: Sequence[Write],
        marks: Sequence[Mark] = (),
        *,
        dropped: int = 0,
        gaps: Sequence[str] = (),
    ) -> None:
        self._writes = tuple(writes)
        self.marks = tuple(marks)
        self.dropped = dropped
        self.gaps = tuple(gaps)

    @overload
    def __getitem__(self, index: int) -> Write: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Write]: ...
    def __getitem__(self, index: int | slice) -> Write | Sequence[Write]:
        return self._writes[index]

    def __len__(self) -> int:
        return len(self._writes)

    def __eq__(self, other: object) -> bool:
        """Histories are equal if their writes and marks are."""
        if not isinstance(other, History):
            return NotImplemented
        return (self._writes, self.marks) == (other._writes, other.marks)

    def __hash__(self) -> int:
        return hash(self._writes)

    def lines(self) -> Iterator[Write | Mark]:
        """Yields writes and marks in their order."""
        marks = list(self.marks)
        for write in self._writes:
            while marks and marks[0].after < write.resource_version:
                yield marks.pop(0)
            yield write
        yield from marks

    def only(self, writes: Sequence[Write]) -> History:
        """Returns some of its writes, with all of its marks."""
        return History(writes, self.marks, dropped=self.dropped, gaps=self.gaps)

    def last(self, count: int) -> History:
        """Returns the last writes, with the marks between them."""
        kept = self._writes[-count:] if count else ()
        since = kept[0].resource_version if len(kept) < len(self) and kept else 0
        marks = [mark for mark in self.marks if mark.after >= since - 1]
        return History(kept, marks, dropped=self.dropped, gaps=self.gaps)

    def __str__(self) -> str:
        lines = []
        if self.dropped:
            lines.append(f"({self.dropped} earlier writes of the control plane are not kept)")
        if self.gaps:
            lines.append(f"(writes may be missing of: {', '.join(self.gaps)})")
        date = None
        for line in self.lines():
            if line.time.date() != date:
                date = line.time.date()
                lines.append(f"── {date}")
            lines.append(str(line))
        return "\n".join(lines) or "nothing was written"

    def __repr__(self) -> str:
        return f"<History of {len(self)} writes>"
