"""Event handlers, which informers call for each add, update and delete, and two implementations.

Handlers must not change the objects that they get. They see states and not every change: several
changes may have become one.

Source: client-go `tools/cache/controller.go`, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from kcm.informers.delta_fifo import DeletedFinalStateUnknown

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class ResourceEventHandler(Protocol[T_contra]):
    """An event handler. Its calls come one at a time, and in order per object."""

    def on_add(self, obj: T_contra, is_in_initial_list: bool) -> None:
        """Handles an object that was added, with `is_in_initial_list` as part of the first list."""
        ...

    def on_update(self, old: T_contra, new: T_contra) -> None:
        """Handles an object that changed, or the same object twice in a resync."""
        ...

    def on_delete(self, obj: T_contra | DeletedFinalStateUnknown[T_contra]) -> None:
        """Handles an object that was deleted. A tombstone has its last known state."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceEventHandlerFuncs(Generic[T]):
    """An event handler that calls functions, any of which may be None."""

    add: Callable[[T], None] | None = None
    update: Callable[[T, T], None] | None = None
    delete: Callable[[T | DeletedFinalStateUnknown[T]], None] | None = None

    def on_add(self, obj: T, is_in_initial_list: bool) -> None:
        if self.add is not None:
            self.add(obj)

    def on_update(self, old: T, new: T) -> None:
        if self.update is not None:
            self.update(old, new)

    def on_delete(self, obj: T | DeletedFinalStateUnknown[T]) -> None:
        if self.delete is not None:
            self.delete(obj)


@dataclass(frozen=True, slots=True)
class FilteringResourceEventHandler(Generic[T]):
    """Passes the objects that `matches` accepts to `handler`.

    An object that begins to match is added, one that stops matching is deleted. A tombstone without
    any state is passed on, since it is not known whether it matched.
    """

    matches: Callable[[T], bool]
    handler: ResourceEventHandler[T]

    def on_add(self, obj: T, is_in_initial_list: bool) -> None:
        if self.matches(obj):
            self.handler.on_add(obj, is_in_initial_list)

    def on_update(self, old: T, new: T) -> None:
        was, matches = self.matches(old), self.matches(new)
        if was and matches:
            self.handler.on_update(old, new)
        elif matches:
            self.handler.on_add(new, False)
        elif was:
            self.handler.on_delete(old)

    def on_delete(self, obj: T | DeletedFinalStateUnknown[T]) -> None:
        last = obj.obj if isinstance(obj, DeletedFinalStateUnknown) else obj
        if last is None or self.matches(last):
            self.handler.on_delete(obj)
