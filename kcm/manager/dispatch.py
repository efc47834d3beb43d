"""Dispatch: adds keys to the work queues for watch events (design 0005).

One manager at a time dispatches a kind, under a fenced lease; managers share the kinds out (design
0067). The others have warm caches and keep the keys of events that the leader has not confirmed
yet, so that the one that takes over continues where the leader stopped.

Guarantees: the script that adds the keys of events also stores the position of these events, so the
keys of no event are lost, and a leader that lost its lease adds nothing. Each key is added at least
once per burst of events; the queue merges repeats. Does not guarantee one addition per event. The
position of events that touch no key is stored up to a second later: whoever takes over sees them
once more, and again they touch no key.

An informer that lists again does not show objects that were created and deleted meanwhile. After
such a list, all keys of the controllers that watch the kind are added, once per controller.
Controllers that watch every kind are left out, since their periodic passes check all objects.

A manager that starts without caches has no old states to compare with. It handles every object of
its first list as added, and replays the deletions since the stored position. If these are lost
(410, new epoch), it adds every key that has persisted state as well, since a list does not show
deletions.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from kcm import errors
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.clock import Clock
from kcm.coordination import FencedLease
from kcm.coordination.workqueue import Addition, Standby, dispatch
from kcm.loops import Loop, Turn
from kcm.manager.positions import read_positions
from kcm.reconcile.contract import Change, Controller, View, Watch
from kcm.store.writes.observing import Observer

log = structlog.get_logger("kcm.dispatch")

FOLLOW_EVERY = 1.0  # seconds between reads of other leaders' positions


@dataclass(frozen=True)
class WatchRoute:
    """One watch of one controller, with a function that returns the controller's view."""

    controller: Controller
    watch: Watch
    view: Callable[[], View]

    def list_additions(
        self, change: Change, crashed: Callable[[str, Exception], None]
    ) -> list[Addition]:
        """Returns the keys that a change touches. If the key function raises, `crashed` is called
        instead.
        """
        try:
            keys = tuple(dict.fromkeys(self.watch.keys(change, self.view())))
        except Exception as error:  # noqa: BLE001 - one controller's bug must not stop the others
            crashed(self.controller.name, error)
            return []
        return [Addition(self.controller.short_name, keys)] if keys else []


@dataclass(frozen=True)
class _Pending:
    resource_version: int
    additions: list[Addition]
    confirms: bool = True  # whether sending it confirms events up to the resourceVersion
    went_back: bool = False  # whether the data went back to the resourceVersion

    @property
    def is_idle(self) -> bool:
        """Whether it is about events that touch no key."""
        return not self.additions and self.confirms and not self.went_back


class KindDispatcher:
    """Collects the keys that the changes of one kind touch. It is an event handler of an
    informer.
    """

    def __init__(
        self,
        resource: Resource,
        routes: Sequence[WatchRoute],
        lease: FencedLease,
        wake: Callable[[], None],
        crashed: Callable[[str, Exception], None],
        *,
        observer: Observer | None = None,
    ) -> None:
        self.resource = resource
        self._observer = observer
        self.lease = lease
        self._routes = routes
        self._wake = wake
        self._crashed = crashed
        # Whether the deletions before its first list are known. Nothing is sent before, since that
        # would store a later position than the one from which they are read.
        self.is_recovered = False
        self._lock = threading.Lock()
        # Sorted by resourceVersion, except for the objects of a first list, which are older than
        # what follows. So a position may be confirmed only when all that was collected before it
        # was sent with it or earlier.
        self._pending: deque[_Pending] = deque()

    # --- informer's side

    def on_add(self, obj: KubeObject, is_in_initial_list: bool) -> None:
        self._note(Change(None, obj))

    def on_update(self, old: KubeObject, new: KubeObject) -> None:
        self._note(Change(old, new))

    def on_delete(self, obj: Any) -> None:
        last = getattr(obj, "obj", obj)  # a DeletedFinalStateUnknown has the last known state
        if last is not None:
            self._note(Change(last, None))

    def _note(self, change: Change) -> None:
        # The informers' thread sends it when it has handed out all that it read.
        version = int(change.object.metadata.resource_version or 0)
        pending = _Pending(version, self._list_additions(change))
        with self._lock:
            last = self._pending[-1] if self._pending else None
            if last is not None and pending.is_idle and last.is_idle:
                self._pending.pop()  # one position stands for both
                pending = max(last, pending, key=lambda one: one.resource_version)
            self._pending.append(pending)

    def _list_additions(self, change: Change) -> list[Addition]:
        listed = [(route, route.list_additions(change, self._crashed)) for route in self._routes]
        if self._observer is not None:
            why = describe_change(self.resource, change)
            for route, additions in listed:
                for addition in additions:
                    self._observer.woken(route.controller.name, addition.keys, why)
        return [addition for _, additions in listed for addition in additions]

    def note(self, change: Change, version: int) -> None:
        """Collects the keys that a change touches. `version` is the resourceVersion of the
        change.
        """
        self.note_additions(self._list_additions(change), version)

    # --- dispatcher's side

    @property
    def is_idle(self) -> bool:
        """Whether nothing that was collected touches a key."""
        with self._lock:
            return all(pending.is_idle for pending in self._pending)

    def prune(self, position: int) -> None:
        """Drops what the leader has confirmed up to `position`."""
        with self._lock:
            while self._pending and self._pending[0].resource_version <= position:
                self._pending.popleft()

    def drain(self) -> list[_Pending]:
        """Returns and removes all that was collected. Call `restore` with it if it cannot be
        sent.
        """
        with self._lock:
            taken = list(self._pending)
            self._pending.clear()
        return taken

    def restore(self, taken: list[_Pending]) -> None:
        """Puts entries back that could not be sent, before those that were collected since."""
        with self._lock:
            self._pending.extendleft(reversed(taken))

    def note_additions(
        self, additions: list[Addition], version: int, *, confirms: bool = True
    ) -> None:
        """Collects keys that the events up to `version` touch.

        Sending them confirms these events, unless `confirms` is false: then the keys are
        additional, and those of the events are collected on their own.
        """
        with self._lock:
            self._pending.append(_Pending(version, additions, confirms))
        self._wake()

    def go_back(self, version: int) -> None:
        """Makes `version` the position, since the data of another API server went back to it.

        What was collected of the lost changes is dispatched, too, and confirms nothing.
        """
        with self._lock:
            lost = [p for p in self._pending if p.resource_version > version]
            additions = merge_additions(a for pending in lost for a in pending.additions)
            kept = (p for p in self._pending if p.resource_version <= version)
            self._pending = deque((*kept, _Pending(version, additions, went_back=True)))
        self._wake()

    def controllers(self) -> list[Controller]:
        """Returns the controllers that watch the kind, including those that watch every kind."""
        return list({route.controller.name: route.controller for route in self._routes}.values())

    def list_own_controllers(self) -> list[str]:
        """Returns the names of the controllers that watch this kind in particular."""
        return list({r.controller.name: None for r in self._routes if r.watch.model is not None})

    def list_cached_additions(self, controller: str) -> list[Addition]:
        """Returns the keys of a controller for all cached objects of the kind."""
        additions = []
        for route in self._routes:
            if route.controller.name == controller and route.watch.model is not None:
                for obj in route.view().lister(route.watch.model).list():
                    additions += route.list_additions(Change(None, obj), self._crashed)
        return merge_additions(additions)


class Dispatcher(Loop):
    """Sends what the dispatchers of kinds have collected, for the kinds that this manager leads.

    The informers' thread calls `send` after each read. A turn sends again what could not be sent,
    stores the positions of events that touch no key, reads other leaders' positions, and handles
    kinds that were listed again.
    """

    def __init__(
        self, io: Any, kinds: Sequence[KindDispatcher], clock: Clock, standby: Standby
    ) -> None:
        """`standby` has the runs of this process that wait for keys."""
        super().__init__("kcm-dispatch")
        self._io = io
        self._kinds = kinds
        self._clock = clock
        self._standby = standby
        self._followed = clock.monotonic()  # when other leaders' positions were read
        # Held while keys are sent: a position is confirmed only when all before it was sent.
        self._sending = threading.Lock()
        self._lock = threading.Lock()
        self._relisted: dict[KindDispatcher, int] = {}  # the resourceVersion of the list

    def send(self) -> None:
        """Sends the collected keys. If that fails, the next turn tries again."""
        try:
            self.flush(only_keys=True)
        except errors.KcmError as error:
            log.warning("dispatch failed, trying again", error=str(error))
            self.wake()

    def turn(self, patience: float) -> Turn:
        """Sends all that there is to send. Raises KcmError."""
        self.enqueue_relisted()
        sent = self.flush()
        if self._clock.monotonic() - self._followed >= FOLLOW_EVERY:
            self.follow()
            self._followed = self._clock.monotonic()
        return Turn(sent > 0, upkeep_in=FOLLOW_EVERY)

    def on_relist(self, kind: KindDispatcher, resource_version: int) -> None:
        """Records that the informer of a kind has listed again, and wakes the loop."""
        with self._lock:
            self._relisted[kind] = resource_version
        self.wake()

    def enqueue_relisted(self) -> None:
        """Collects all keys of the controllers that watch kinds which were listed again."""
        with self._lock:
            relisted, self._relisted = self._relisted, {}
        additions: dict[str, list[Addition]] = {}
        self._go_back(relisted)
        for kind, resource_version in relisted.items():
            for name in kind.list_own_controllers():
                if name not in additions:
                    additions[name] = [
                        m for each in self._kinds for m in each.list_cached_additions(name)
                    ]
                kind.note_additions(additions[name], resource_version, confirms=False)

    def _go_back(self, relisted: Mapping[KindDispatcher, int]) -> None:
        """Notices lists that are older than what was dispatched, as of an etcd that was restored.

        kcm's own store never goes back: a new epoch has higher resourceVersions.
        """
        for kind, position in self._read_positions(list(relisted)).items():
            if relisted[kind] < position:
                log.warning(
                    "the server's data went back",
                    kind=kind.resource.name,
                    dispatched=position,
                    listed=relisted[kind],
                )
                kind.go_back(relisted[kind])

    def flush(self, *, only_keys: bool = False) -> int:
        """Sends all that was collected for the kinds that this manager leads and has recovered;
        with `only_keys`, only for those of which keys were collected.

        Returns the number of keys that were not waiting already. Raises KcmError; a queue with a
        key of a wrong type holds up only the kinds that its controller watches.
        """
        sent, failure = 0, None
        with self._sending:
            for kind in self._kinds:
                if only_keys and kind.is_idle:
                    continue
                try:
                    sends = kind.lease.held and kind.is_recovered
                    sent += self._flush_kind(kind) if sends else 0
                except errors.WrongTypeOfKey as error:
                    failure = error
        if failure is not None:
            raise failure
        return sent

    def _flush_kind(self, kind: KindDispatcher) -> int:
        taken = kind.drain()
        if not taken:
            return 0
        try:
            confirmed = (pending.resource_version for pending in taken if pending.confirms)
            position = max(confirmed, default=0)
            positions = {kind.resource.name: position} if position else {}
            additions = merge_additions(
                addition for pending in taken for addition in pending.additions
            )
            went_back = any(pending.went_back for pending in taken)
            with self._standby.reserve({addition.queue for addition in additions}) as offer:
                done = dispatch(
                    self._io,
                    kind.lease.fence,
                    positions,
                    additions,
                    went_back=went_back,
                    waiting=offer.names,
                )
                offer.hand_over(done.taken)
            return done.added
        except errors.KcmError as error:
            kind.restore(taken)
            if isinstance(error, errors.Fenced):
                log.info("another manager dispatches the kind now", kind=kind.resource.name)
                return 0
            raise

    def follow(self) -> None:
        """Drops what other leaders have confirmed."""
        following = [kind for kind in self._kinds if not kind.lease.held]
        for kind, position in self._read_positions(following).items():
            kind.prune(position)

    def _read_positions(self, kinds: Sequence[KindDispatcher]) -> Mapping[KindDispatcher, int]:
        positions = read_positions(self._io, [kind.resource for kind in kinds])
        return {kind: positions.get(kind.resource, 0) for kind in kinds}


def describe_change(resource: Resource, change: Change) -> str:
    """Returns a change in words, like `pods n/web-1 changed (v12)`."""
    what = "gone" if change.new is None else "new" if change.old is None else "changed"
    obj = change.object
    return f"{resource.name} {obj.key} {what} (v{obj.metadata.resource_version})"


def merge_additions(additions: Iterable[Addition]) -> list[Addition]:
    """Returns the same keys as one addition for each queue."""
    keys: dict[str, dict[str, None]] = {}
    for addition in additions:
        keys.setdefault(addition.queue, {}).update(dict.fromkeys(addition.keys))
    return [Addition(queue, tuple(marked)) for queue, marked in keys.items()]
