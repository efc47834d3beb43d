"""What an informer calls for each add, update and delete, and two ready-made handlers.

Handlers must not change the objects that they are given. They see states and not every change:
several changes may have become one.

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
        """Handles an object that appeared; `is_in_initial_list` says whether it was there at the
        start.
        """
        ...

    def on_update(self, old: T_contra, new: T_contra) -> None:
        """Handles an object that changed, or that a resync shows again (then both are the same)."""
        ...

    def on_delete(self, obj: T_contra | DeletedFinalStateUnknown[T_contra]) -> None:
        """Handles an object that is gone. A tombstone carries its last known state."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceEventHandlerFuncs(Generic[T]):
    """An event handler made of functions, any of which may be left out."""

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
    """Passes on the objects that `matches` accepts.

    An object that begins to match is added, one that stops matching is deleted. A tombstone without
    any state passes, for nobody can tell what it was.
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
