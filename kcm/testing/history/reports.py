"""What a report about a test shows: the writes that the test's namespace saw."""

from __future__ import annotations

from dataclasses import dataclass

from kcm.testing.history.recorder import Recorder
from kcm.testing.history.writes import History, Write

MOST_LINES = 60  # writes in the text
MOST_SHOWN = 5_000  # writes in the page

_LEASES = "leases.coordination.k8s.io"


@dataclass(frozen=True)
class Report:
    """The writes to show, and how many were left out, as they are routine or too many.

    `namespace` is the one that it is about, None if it is about all.
    """

    history: History
    omitted: int
    namespace: str | None = None

    def __str__(self) -> str:
        shown = self.history.last(MOST_LINES)
        omitted = self.omitted + len(self.history) - len(shown)
        head = [f"({omitted} earlier or routine writes are left out)"] if omitted else []
        return "\n".join([*head, str(shown)])


def build_report(recorder: Recorder, namespace: str | None, since: int) -> Report:
    """Returns the report about one namespace, or with None about everything, after `since`."""
    whole = recorder.history(since=since)
    seen = [write for write in whole if namespace is None or _is_seen(write, namespace)]
    kept = [write for write in seen if not _is_routine(write)][-MOST_SHOWN:]
    return Report(whole.only(kept), len(seen) - len(kept), namespace)


def _is_seen(write: Write, namespace: str) -> bool:
    """Reports whether a write is of an object in a namespace, or of the namespace itself or a
    volume that one of its claims has.
    """
    if write.namespace:
        return write.namespace == namespace
    if write.resource == "persistentvolumes":
        claim = (write.last.get("spec") or {}).get("claimRef") or {}
        return bool(claim.get("namespace") == namespace)
    return write.resource == "namespaces" and write.name == namespace


def _is_routine(write: Write) -> bool:
    """Reports whether a write only says that a process or a node is alive."""
    if write.resource == _LEASES:
        return True
    changes = write.changes if write.resource == "nodes" and write.event == "MODIFIED" else ()
    return bool(changes) and all(each.path.endswith(".lastHeartbeatTime") for each in changes)
