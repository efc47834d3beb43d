"""The memory of an autoscaler: its recommendations and changes of scale, with their times.

It is kept in Redis between syncs, so that any worker can run the next sync. Upstream keeps it in
memory and loses it at each restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

_UID = "uid"


@dataclass(frozen=True)
class ReplicaMark:
    """A number of replicas at a time, in seconds since 1970."""

    replicas: int
    moment: float


Marks = tuple[ReplicaMark, ...]


@dataclass(frozen=True)
class History:
    """The recommendations of one autoscaler before limits, and the replicas it added and
    removed.
    """

    uid: str
    recommendations: Marks = ()
    up: Marks = ()
    down: Marks = ()

    @classmethod
    def load(cls, memory: Mapping[str, str], uid: str) -> History:
        """Returns the history from the memory of the last sync.

        It is empty if the memory is of an earlier autoscaler of the same name.
        """
        if memory.get(_UID) != uid:
            return cls(uid)
        return cls(
            uid,
            _read(memory.get("recommendations", "")),
            _read(memory.get("up", "")),
            _read(memory.get("down", "")),
        )

    def state(self) -> dict[str, str]:
        """Returns the history as texts, for the memory of the next sync."""
        marks = {"recommendations": self.recommendations, "up": self.up, "down": self.down}
        return {_UID: self.uid} | {
            name: _text(recorded) for name, recorded in marks.items() if recorded
        }

    def with_recommendation(self, replicas: int, now: datetime, window: timedelta) -> History:
        """Returns the history with one more recommendation, without those older than the window."""
        kept = _since(self.recommendations, now - window)
        return replace(self, recommendations=(*kept, ReplicaMark(replicas, now.timestamp())))

    def with_rescale(
        self, before: int, after: int, now: datetime, up: timedelta, down: timedelta
    ) -> History:
        """Returns the history with the change from `before` to `after` replicas.

        Added replicas are kept for the time `up`, removed ones for the time `down`.
        """
        mark = (ReplicaMark(abs(after - before), now.timestamp()),)
        added, taken = (mark, ()) if after > before else ((), mark)
        return replace(
            self,
            up=(*_since(self.up, now - up), *added),
            down=(*_since(self.down, now - down), *taken),
        )


def sum_changes(marks: Iterable[ReplicaMark], seconds: int, now: datetime) -> int:
    """Returns the sum of the replicas in `marks` within the last `seconds` seconds."""
    start = now.timestamp() - seconds
    return sum(mark.replicas for mark in marks if mark.moment > start)


def _since(marks: Marks, start: datetime) -> Marks:
    return tuple(mark for mark in marks if mark.moment >= start.timestamp())


def _text(marks: Marks) -> str:
    return " ".join(f"{mark.replicas}@{mark.moment:.3f}" for mark in marks)


def _read(text: str) -> Marks:
    pairs = (part.partition("@") for part in text.split())
    return tuple(ReplicaMark(int(replicas), float(moment)) for replicas, _, moment in pairs)
