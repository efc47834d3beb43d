"""The recorder of a control plane: it observes writes and syncs, and answers questions about
them.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from kcm import errors
from kcm.api.scheme import Kinds, Resource
from kcm.clock import Clock
from kcm.informers.follower import Follower
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store, WatchEntry
from kcm.store.writes.items import Encoded, WriteItem, WriteResult
from kcm.store.writes.observing import Author, Refusal, SyncEnd
from kcm.testing.history.explaining import Explainer
from kcm.testing.history.explanation import Explanation
from kcm.testing.history.invariants import Invariant, InvariantError
from kcm.testing.history.journal import Entry, Journal
from kcm.testing.history.snapshot import Item, Snapshot, split_name
from kcm.testing.history.syncs import SyncLog
from kcm.testing.history.writes import History, Mark, Write

KEPT_MARKS = 1_000


class Recorder:
    """Records what happens in one control plane, from `start` to `stop`.

    What was recorded can be read after `stop` as well.
    """

    def __init__(self, clock: Clock, kinds: Kinds) -> None:
        """`kinds` are those of the control plane's store."""
        self.clock = clock
        self._kinds = kinds
        self.journal = Journal(clock)
        self.syncs = SyncLog(clock)
        self._marks: deque[Mark] = deque(maxlen=KEPT_MARKS)
        self._invariants: list[Invariant] = []
        self._reading = threading.Lock()
        self._logs: LogReader | None = None
        self._gaps: frozenset[str] = frozenset()

    def start(self, settings: Settings) -> None:
        """Begins to read the logs of the server of `settings`. The stores that have this recorder
        as their observer tell it what they write.
        """
        self._logs = LogReader(settings, self.journal, self._kinds)

    def stop(self) -> None:
        """Ends to read. May be called again."""
        if self._logs is not None:
            self._logs.close()
            self._logs = None

    # --- what comes in

    def wrote(
        self,
        author: Author,
        batch: Sequence[tuple[WriteItem, Encoded]],
        results: Sequence[WriteResult],
    ) -> None:
        """Takes the writes that a store has made."""
        self.journal.note(author, batch, results)

    def woken(self, controller: str, keys: Sequence[str], why: str) -> None:
        """Takes keys that are about to be synced, and the change because of which."""
        self.syncs.note_wake(controller, keys, why)

    def synced(self, end: SyncEnd) -> None:
        """Takes the end of a sync."""
        self.syncs.note(end)

    def refused(self, refusal: Refusal) -> None:
        """Takes a request that the API server refused."""
        self.syncs.note_refusal(refusal)

    def mark(self, text: str, kind: str = "note") -> Mark:
        """Puts a line into the timeline, after the last write so far."""
        mark = Mark(text, kind, self.clock.now(), self.journal.newest)
        self._marks.append(mark)
        return mark

    def mark_fault(self, text: str) -> Mark:
        """Puts a line about a failure that the test made into the timeline."""
        return self.mark(text, "fault")

    # --- what is asked

    def read_logs(self) -> None:
        """Adds what no store of this process has reported. Raises StoreUnavailable."""
        with self._reading:
            if self._logs is not None:
                self._logs.read()
                self._gaps = frozenset(self._logs.gaps)

    def position(self) -> int:
        """Returns the resourceVersion of the newest write. Raises StoreUnavailable."""
        self.read_logs()
        return self.journal.newest

    def history(
        self,
        kind: str = "",
        name: str = "",
        namespace: str | None = None,
        since: datetime | int | None = None,
    ) -> History:
        """Returns the writes of some objects; see `Looking.history`."""
        self.read_logs()
        resource = self._find_resource(kind) if kind else ""
        after = since if isinstance(since, int) else 0

        def is_wanted(entry: Entry) -> bool:
            own_namespace, _, own_name = entry.key.rpartition("/")
            return (
                resource in {"", entry.resource}
                and name in {"", own_name}
                and (namespace is None or namespace == own_namespace)
                and not (isinstance(since, datetime) and entry.time < since)
            )

        writes = [Write(*each) for each in self.journal.after(after) if is_wanted(each[0])]
        return self._build_history(writes, since)

    def _find_resource(self, kind: str) -> str:
        """Returns the resource of a kind, also of one that is gone, by its plural name.

        Raises UnknownKind.
        """
        try:
            return self._kinds.lookup(kind).name
        except errors.UnknownKind:
            for resource in self.journal.resources():
                if kind.lower() in {resource, resource.partition(".")[0]}:
                    return resource
            raise

    def explain(self, name: str, namespace: str) -> Explanation:
        """Explains an object; see `Looking.explain`."""
        kind, own = split_name(name)
        resource = self._kinds.lookup(kind)
        self.read_logs()
        current = self.journal.current()
        world = Snapshot(Item(resource, json.loads(raw)) for resource, raw in current)
        return Explainer(world, self.syncs, self._history_of).explain(resource, namespace, own)

    def _history_of(self, resource: str, key: str) -> History:
        writes = [Write(*each) for each in self.journal.of((resource, key))]
        return History(writes, gaps=sorted(self._gaps))

    def _build_history(
        self, writes: Sequence[Write], since: datetime | int | None = None
    ) -> History:
        marks = [mark for mark in tuple(self._marks) if _is_since(mark, since)]
        dropped = self.journal.dropped
        if isinstance(since, int) and since >= self.journal.dropped_to:
            dropped = 0
        return History(writes, marks, dropped=dropped, gaps=sorted(self._gaps))

    # --- invariants

    def never(self, holds: Callable[[Write], object], what: str) -> Invariant:
        """Begins to check that no write fulfils a condition."""
        invariant = Invariant(holds, what, self, self.position())
        self._invariants.append(invariant)
        return invariant

    def drop(self, invariant: Invariant) -> None:
        """Stops checking an invariant. May be called again."""
        if invariant in self._invariants:
            self._invariants.remove(invariant)

    @property
    def invariants(self) -> Sequence[Invariant]:
        """The invariants that are checked."""
        return tuple(self._invariants)

    def check(self) -> None:
        """Checks the invariants with each write since the last time.

        Raises AssertionError for the first that is broken, which is checked no more.
        """
        __tracebackhide__ = True  # of pytest
        if not self._invariants:
            return
        self.read_logs()
        for invariant in list(self._invariants):
            if invariant.since < self.journal.dropped_to:
                self.drop(invariant)
                raise InvariantError(
                    f"it cannot be told whether this happened: {invariant.what}: there were more "
                    "writes since the last check than are kept; check more often, by a wait"
                )
            broken = invariant.find_broken(self.history(since=invariant.since))
            if broken is not None:
                self.drop(invariant)
                near = self.history(namespace=broken.namespace or None)
                raise InvariantError(invariant.explain(broken, near))


def _is_since(mark: Mark, since: datetime | int | None) -> bool:
    if isinstance(since, datetime):
        return mark.time >= since
    return since is None or mark.after >= since


# --- Reads the watch logs of a control plane into its journal.
#
# It is for what no store of this process has reported: writes of other processes, and those whose
# reply was lost. Guarantees: after `read`, the journal has every write that was made before, unless
# `gaps` names its kind.


class LogReader:
    """Reads what was added to the logs since the last time. For one thread at a time."""

    def __init__(self, settings: Settings, journal: Journal, kinds: Kinds) -> None:
        self._io = RedisIO(settings, name="kcm/history")
        self._store = Store(self._io)
        self._journal = journal
        self._kinds = kinds
        self._follower = Follower(self._store, self)
        self._begun: set[Resource] = set()
        self.gaps: set[str] = set()  # kinds whose logs were trimmed before they were read

    def read(self) -> None:
        """Reads all that was added. Raises StoreUnavailable."""
        self._follower.follow(self._kinds.resources())
        before: Mapping[Resource, int] = {}
        while self._follower.is_listing or before != self._follower.positions:
            before = dict(self._follower.positions)
            self._follower.read(0.0)

    def list_kinds(self, kinds: Sequence[Resource]) -> Mapping[Resource, int]:
        """Returns the beginning of a log, or the newest write where its changes are gone."""
        newest = self._store.last_rvs(kinds)
        lost = self._begun.intersection(kinds)
        self.gaps |= {k.name for k in lost if newest[k] and not self._journal.has(newest[k])}
        self._begun.update(kinds)
        return {kind: newest[kind] if kind in lost else 0 for kind in kinds}

    def apply_changes(
        self, kind: Resource, changes: Sequence[WatchEntry], resource_version: int
    ) -> None:
        """Adds changes to the journal; see `ChangeTarget`."""
        self._journal.read(changes)

    def close(self) -> None:
        """Closes the connection."""
        self._io.close()
