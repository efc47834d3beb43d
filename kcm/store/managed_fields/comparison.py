"""Compares two states of an object: the paths of fields that are new or changed, and that are gone.

Both states are walked together, and equal parts are skipped, so the cost depends on the changes
rather than on the size of the object. It is at most linear in the sizes of both states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kcm.apiextensions import structure
from kcm.apiextensions.structure import Field, Struct
from kcm.apimachinery.base import MergeKey, MergeSet
from kcm.store.managed_fields.fieldsets import (
    Path,
    Paths,
    Values,
    add_holders,
    is_owned,
    key_items,
    walk_field,
    walk_items,
    walk_struct,
)

_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Difference:
    """The paths that differ between two states of an object, in the form in which managers own
    them.

    The path of a struct, map or list with paths of its own is changed only if it did not exist
    before.
    """

    changed: Paths
    gone: Paths


def compare(before: Mapping[str, Any], after: Mapping[str, Any], model: Struct) -> Difference:
    """Returns the difference between the JSON of an object before and after an update."""
    comparison = _Comparison()
    comparison.add_structs(before, after, model, ())
    return Difference(
        frozenset(filter(is_owned, comparison.changed)),
        frozenset(filter(is_owned, comparison.gone)),
    )


@dataclass
class _Comparison:
    """Collects differences. An old value that is missing is None."""

    changed: set[Path] = field(default_factory=set)
    gone: set[Path] = field(default_factory=set)

    def add_structs(
        self, old: Mapping[str, Any], new: Mapping[str, Any], model: Struct, at: Path
    ) -> None:
        """Adds the differences between two structs or maps."""
        for name, value in new.items():
            before = old.get(name)
            if before != value:
                declared = structure.field(model, name)
                self._add_field(before, value, declared, (*at, f"f:{name}"))
        for name, before in old.items():
            if name not in new:
                declared = structure.field(model, name)
                self.gone.update(walk_field(before, declared, (*at, f"f:{name}"), nodes=True))

    def _add_field(self, old: Any, new: Any, declared: Field | None, at: Path) -> None:
        old_kind, new_kind = _kind_of(old, declared), _kind_of(new, declared)
        is_path = new_kind is None or declared is None or declared.optional
        if is_path and (new_kind is None or old is None):
            self.changed.add(at)
        if new_kind is not old_kind and old is not None:
            paths_before = walk_field(old, declared, at, nodes=True)
            self.gone.update(path for path in paths_before if path != at or not is_path)
        if new_kind is dict:
            struct = declared.shape.struct if declared else None
            self.add_structs(old if old_kind is dict else _NOTHING, new, struct, at)
        elif new_kind is list:
            assert declared is not None
            assert declared.merge is not None
            items = old if old_kind is list else []
            self._add_items(items, new, declared.merge, declared.shape.struct, at)

    def _add_items(
        self,
        old: Sequence[Any],
        new: Sequence[Any],
        merge: MergeKey | MergeSet,
        struct: Struct,
        at: Path,
    ) -> None:
        old_items, new_items = dict(key_items(old, merge)), dict(key_items(new, merge))
        if len(old_items) < len(old) or len(new_items) < len(new):
            self._add_repeated_items(old, new, merge, struct, at)
            return
        for key, item in new_items.items():
            before = old_items.get(key)
            if before != item:
                self._add_item(before, item, struct, (*at, key))
        removed = [(key, item) for key, item in old_items.items() if key not in new_items]
        self.gone.update(walk_items(removed, struct, at, nodes=True))

    def _add_item(self, old: Any, new: Any, struct: Struct, at: Path) -> None:
        if _has_fields(new, struct):
            if old is None:
                self.changed.add(at)
            self.add_structs(old if isinstance(old, dict) else _NOTHING, new, struct, at)
            return
        self.changed.add(at)
        if _has_fields(old, struct):
            self.gone.update(walk_struct(old, struct, at, nodes=True))

    def _add_repeated_items(
        self,
        old: Sequence[Any],
        new: Sequence[Any],
        merge: MergeKey | MergeSet,
        struct: Struct,
        at: Path,
    ) -> None:
        """Adds the differences between lists in which keys occur more than once.

        Items with the same key count as one that has the fields of all, and the values of the last.
        """
        present = frozenset(walk_items(key_items(new, merge), struct, (), nodes=True))
        holders = add_holders(frozenset(path[:-1] for path in present if len(path) > 1))
        was, now = Values(old, struct, merge), Values(new, struct, merge)
        for path in present:
            before = was.at(path)
            if before is None if path in holders else before != now.at(path):
                self.changed.add((*at, *path))
        paths_before = walk_items(key_items(old, merge), struct, (), nodes=True)
        self.gone.update((*at, *path) for path in paths_before if path not in present)


def _kind_of(value: Any, declared: Field | None) -> type | None:
    """Returns dict or list for a value whose fields or items have paths of their own, else None."""
    if not value:
        return None
    if isinstance(value, dict):
        return None if declared and declared.atomic else dict
    is_keyed = isinstance(value, list) and declared is not None and declared.merge is not None
    return list if is_keyed else None


def _has_fields(item: Any, struct: Struct) -> bool:
    return isinstance(item, dict) and bool(item) and not (struct and struct.kubernetes_atomic)
