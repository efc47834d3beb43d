"""Follows objects as they change: lists, watches, and lists again when the watch expires."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from kcm import errors
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.cli.objects.targets import CommandSelection, NamedObjects
from kcm.clock import Clock, RealClock
from kcm.informers.follower import Follower
from kcm.store import Store, WatchEntry, damage
from kcm.store.reader import each_list_item

_PATIENCE = 1.0  # seconds that a read waits for changes, below the socket timeout
_PAUSE = 1.0  # seconds between attempts while the store is unavailable

Show = Callable[[Resource, Sequence[KubeObject]], None]


class ShownChanges:
    """Shows the selected objects of some kinds, then each change of them once.

    When the watch has expired (410), it lists again and shows only differences. An object that
    stops matching, or is deleted, is shown for the last time.
    """

    def __init__(
        self, store: Store, targets: Sequence[NamedObjects], chosen: CommandSelection, show: Show
    ) -> None:
        self._store = store
        self._targets = {target.resource: target for target in targets}
        self._chosen = chosen
        self._show = show
        self._shown: dict[Resource, dict[str, KubeObject]] = {r: {} for r in self._targets}
        self._follower = Follower(store, self, self._targets)

    def step(self, patience: float = _PATIENCE) -> None:
        """Waits up to `patience` seconds for changes and shows them. Raises StoreUnavailable."""
        self._follower.read(patience)

    def list_kinds(self, kinds: Sequence[Resource]) -> Mapping[Resource, int]:
        """Lists the objects and shows them; see `ChangeTarget`."""
        return {kind: self._list(kind) for kind in kinds}

    def apply_changes(
        self, kind: Resource, changes: Sequence[WatchEntry], resource_version: int
    ) -> None:
        """Shows changes; see `ChangeTarget`."""
        for change in changes:
            self._see(change)

    def _list(self, resource: Resource) -> int:
        position = self._store.resource_version()
        objects = each_list_item(self._store, resource, namespace=self._chosen.scope(resource))
        present = {obj.key: obj for obj in objects if self._is_selected(resource, obj)}
        shown = self._shown[resource]
        gone = [obj for key, obj in shown.items() if key not in present]
        new = [obj for key, obj in present.items() if not _same(shown.get(key), obj)]
        self._shown[resource] = present
        if gone or new:
            self._show(resource, gone + new)
        return position

    def _see(self, change: WatchEntry) -> None:
        shown = self._shown[change.resource]
        obj = damage.decode_change(change)
        if obj is None:  # the name is enough to show that something was deleted
            obj = shown.get(change.key) if change.type == "DELETED" else None
        if obj is None:
            return
        selected = self._is_selected(change.resource, obj)
        if not selected and change.key not in shown:
            return
        if change.type == "DELETED" or not selected:
            shown.pop(change.key, None)
        else:
            shown[change.key] = obj
        self._show(change.resource, [obj])

    def _is_selected(self, resource: Resource, obj: KubeObject) -> bool:
        target, chosen = self._targets[resource], self._chosen
        if target.names and obj.name not in target.names:
            return False
        scope = chosen.scope(resource)
        if scope is not None and obj.namespace != scope:
            return False
        if chosen.labels and not chosen.labels.matches(obj.metadata.labels):
            return False
        return not chosen.fields or chosen.fields.matches(obj, resource)


def _same(known: KubeObject | None, obj: KubeObject) -> bool:
    return known is not None and (known.metadata.resource_version == obj.metadata.resource_version)


def follow(
    store: Store,
    targets: Sequence[NamedObjects],
    chosen: CommandSelection,
    show: Show,
    *,
    report: Callable[[str], None],
    clock: Clock | None = None,
) -> None:
    """Follows objects until it is interrupted. Outages of the store are passed to `report`."""
    clock = clock or RealClock()
    shown = ShownChanges(store, targets, chosen, show)
    shown.step(0.0)
    never, away = threading.Event(), False
    while True:
        try:
            shown.step()
            away = False
        except errors.Temporary as error:
            if not away:
                report(f"{error.message}; trying again")
            away = True
            clock.wait(never, _PAUSE)
