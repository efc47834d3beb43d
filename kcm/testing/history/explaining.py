"""Builds explanations from the objects, Events, syncs and writes of one moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kcm import errors
from kcm.api.scheme import BUILT_IN, Resource
from kcm.testing.history.explanation import Condition, EventLine, Explanation, Related
from kcm.testing.history.snapshot import Item, Snapshot
from kcm.testing.history.states import describe_state
from kcm.testing.history.syncs import Sync, SyncLog
from kcm.testing.history.waits import find_waits
from kcm.testing.history.writes import History, describe

_MOST_EVENTS = 10
_MOST_WRITES = 8
_MOST_REFUSED = 8
_MOST_DEPENDENTS = 20  # of one object
_DEPTH = 5  # of the tree of dependents
_CONTROLLER = "-controller"
# Controllers that are named after one kind, and whose keys name objects of another.
_KEYS_OF_OTHERS = {
    "endpointslice-controller": "services",
    "serviceaccount-controller": "namespaces",
}


class Explainer:
    """Explains objects of a snapshot. `history_of` returns the writes of an object by resource and
    key.
    """

    def __init__(
        self, world: Snapshot, syncs: SyncLog, history_of: Callable[[str, str], History]
    ) -> None:
        self._world = world
        self._syncs = syncs
        self._history_of = history_of

    def explain(self, resource: Resource, namespace: str, name: str) -> Explanation:
        """Explains an object, whether it exists or not."""
        namespace = namespace if resource.namespaced else ""
        key = f"{namespace}/{name}" if namespace else name
        asked = f"{resource.singular}/{name}"
        history = self._history_of(resource.name, key)
        refused = tuple(self._syncs.refused(resource.name, namespace, name)[-_MOST_REFUSED:])
        syncs = tuple(self._last_syncs(resource.name, key))
        item = self._world.find(resource.name, namespace, name)
        if item is None:
            state = self._say_why_absent(resource, name, history)
            return Explanation(
                asked, namespace, None, state, syncs=syncs, refused=refused,
                history=history.last(_MOST_WRITES),
            )  # fmt: skip
        if resource.name == "pods" and not item.spec.get("nodeName"):
            syncs += tuple(self._syncs.of_key(str(item.spec.get("schedulerName")))[-1:])
        dependents = self._relate_all(item, set(), _DEPTH)
        return Explanation(
            asked,
            namespace,
            item,
            describe_state(item),
            waits=(*self._waits(item, syncs), *_waits_below(dependents)),
            conditions=tuple(map(_condition, item.conditions)),
            finalizers=tuple(item.metadata.get("finalizers") or ()),
            owners=tuple(self._owners(item)),
            dependents=dependents,
            events=tuple(map(_event_line, self._world.events_about(item)[-_MOST_EVENTS:])),
            syncs=syncs,
            refused=refused,
            history=history.last(_MOST_WRITES),
        )

    def _waits(self, item: Item, syncs: Sequence[Sync]) -> Iterator[str]:
        yield from find_waits(item, self._world)
        for sync in syncs:
            if sync.end.error:
                again = f", and is tried again at {sync.next:%H:%M:%S}" if sync.next else ""
                yield f"{sync.end.controller} fails{again}: {sync.end.error}"

    def _say_why_absent(self, resource: Resource, name: str, history: History) -> str:
        if history and history[-1].event == "DELETED":
            last = history[-1]
            who = f"{describe(last.author)} at {last.time:%H:%M:%S}"
            return f"it does not exist; its last state was removed by {who}"
        others = [item.namespace for item in self._world.of(resource.name) if item.name == name]
        if others:
            return f"it does not exist here, but in {', '.join(sorted(others))}"
        return "it does not exist, and has not existed as far as writes are kept"

    def _last_syncs(self, resource: str, key: str) -> Iterator[Sync]:
        """Yields the last sync of each controller that may mean this object by the key."""
        last = {sync.end.controller: sync for sync in self._syncs.of_key(key)}
        for name, sync in last.items():
            meant = _kind_of(name)
            if meant is None or meant.name == resource:
                yield sync

    # --- relations

    def _owners(self, item: Item) -> Iterator[Related]:
        for name, owner in self._world.owners(item):
            if owner is None:
                yield Related(name, "gone")
            else:
                waits = tuple(find_waits(owner, self._world))
                yield Related(owner.title, describe_state(owner), waits)
                yield from self._owners(owner)

    def _relate_all(self, item: Item, seen: set[str], depth: int) -> tuple[Related, ...]:
        if depth == 0 or item.uid in seen:
            return ()
        seen = seen | {item.uid}
        found = sorted(self._world.dependents(item), key=lambda one: (one.kind, one.name))
        related = [self._relate(one, seen, depth) for one in found[:_MOST_DEPENDENTS]]
        if len(found) > _MOST_DEPENDENTS:
            related.append(Related(f"and {len(found) - _MOST_DEPENDENTS} more", "not shown"))
        return tuple(related)

    def _relate(self, item: Item, seen: set[str], depth: int) -> Related:
        syncs = tuple(self._last_syncs(item.resource, item.key))
        return Related(
            item.title,
            describe_state(item),
            tuple(self._waits(item, syncs)),
            self._relate_all(item, seen, depth - 1),
        )


def _waits_below(related: Sequence[Related]) -> Iterator[str]:
    """Yields what dependents wait for, the same wait of several only once."""
    found: dict[str, list[str]] = {}
    for title, wait in _every_wait(related):
        found.setdefault(wait, []).append(title)
    for wait, titles in found.items():
        more = f" and {len(titles) - 1} more" if len(titles) > 1 else ""
        yield f"{titles[0]}{more}: {wait}"


def _every_wait(related: Sequence[Related]) -> Iterator[tuple[str, str]]:
    for one in related:
        yield from ((one.title, wait) for wait in one.waits)
        yield from _every_wait(one.dependents)


def _kind_of(controller: str) -> Resource | None:
    """Returns the kind of the keys of a controller, None if its name does not tell."""
    try:
        return BUILT_IN.lookup(
            _KEYS_OF_OTHERS.get(controller, controller.removesuffix(_CONTROLLER))
        )
    except errors.UnknownKind:
        return None


def _condition(raw: Mapping[str, Any]) -> Condition:
    return Condition(
        str(raw.get("type", "")),
        str(raw.get("status", "")),
        str(raw.get("reason") or ""),
        str(raw.get("message") or ""),
    )


def _event_line(raw: Mapping[str, Any]) -> EventLine:
    series, source = raw.get("series") or {}, raw.get("source") or {}
    times = (series.get("lastObservedTime"), raw.get("lastTimestamp"), raw.get("eventTime"))
    return EventLine(
        str(raw.get("type") or ""),
        str(raw.get("reason") or ""),
        str(raw.get("message") or raw.get("note") or ""),
        str(raw.get("reportingComponent") or source.get("component") or "somebody"),
        int(series.get("count") or raw.get("count") or 1),
        str(next(filter(None, times), "")),
    )
