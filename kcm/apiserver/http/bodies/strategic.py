"""Strategic merge patch: lists of structs merge by the keys that the models define.

Arguments are not changed. Directives never end up in the result. The time grows linearly with the
lengths of both arguments.

Source: staging/src/k8s.io/apimachinery/pkg/util/strategicpatch/patch.go, Kubernetes 1.33.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kcm import errors
from kcm.apiextensions import structure
from kcm.apiextensions.structure import Struct
from kcm.apimachinery.base import MergeKey, MergeSet

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_REMOVE = "$deleteFromPrimitiveList/"
_MOST_OF_ONE = 100  # the most items of a patch for one list item: each merge copies that
_SHOWN = 200  # the most characters of bad input that a message shows
_GONE = object()

Json = Mapping[str, Any]


def apply(target: Json, patch: Json, model: Struct) -> dict[str, Any]:
    """Returns `target` with `patch` applied. Raises BadRequest for an unknown directive."""
    directive = patch.get(_PATCH)
    if directive == "replace":
        return apply({}, {name: value for name, value in patch.items() if name != _PATCH}, None)
    if directive == "delete":
        return {}
    if directive is not None and directive != "merge":
        raise errors.BadRequest(f"Unknown patch type {str(directive)[:_SHOWN]!r} found in map")
    merged = _retain_keys(dict(target), patch)
    for name, value in patch.items():
        if not name.startswith("$"):
            _set(merged, name, value, patch, model)
    _remove_values(merged, patch)
    _order_unpatched(merged, patch, model)
    return merged


def _retain_keys(merged: dict[str, Any], patch: Json) -> dict[str, Any]:
    kept = patch.get(_RETAIN)
    if kept is None:
        return merged
    named = [name for name, value in patch.items() if name[:1] != "$" and value is not None]
    names = {name for name in kept if isinstance(name, str)} if isinstance(kept, list) else None
    if names is None or not names.issuperset(named):
        raise errors.BadRequest("invalid $retainKeys: it must list every field that is set")
    return {name: value for name, value in merged.items() if name in names}


def _set(merged: dict[str, Any], name: str, value: Any, patch: Json, model: Struct) -> None:
    if value is None:
        merged.pop(name, None)
        return
    field = structure.field(model, name)
    present = merged.get(name)
    if isinstance(value, Mapping):
        base = present if isinstance(present, Mapping) else {}
        merged[name] = apply(base, value, field.shape.struct if field else None)
    elif isinstance(value, list) and field is not None and field.patch_merge is not None:
        items = present if isinstance(present, list) else []
        order = _order(patch, name)
        merged[name] = _merge_list(items, value, order, field.patch_merge, field.shape.struct)
    else:
        merged[name] = _without_directives(value)


def _order(patch: Json, name: str) -> list[Any] | None:
    order = patch.get(_ORDER + name)
    if order is not None and not isinstance(order, list):
        raise errors.BadRequest(f"{_ORDER}{name} must be a list")
    return order


def _merge_list(
    present: Sequence[Any],
    patch: Sequence[Any],
    order: list[Any] | None,
    merge: MergeKey | MergeSet,
    model: Struct,
) -> list[Any]:
    if isinstance(merge, MergeSet):
        tokens = {_token(value) for value in present}
        merged = list(present) + [value for value in patch if _token(value) not in tokens]
        return _order_twice(merged, (present, present), patch, order, _token)
    if any(_directive(item) == "replace" for item in patch):
        return [_without_directives(item) for item in patch if _directive(item) != "replace"]
    items = _Items(present, merge.key, model)
    for item in patch:
        items.patch(item)
    sent = [item for item in patch if _directive(item) != "delete"]
    left = items.left()
    # Upstream deletes and adds within the slice whose order it compares with afterwards.
    before = (items.left_of(present), left[: len(present)])
    return _order_twice(left, before, sent, order, _reader(merge.key))


class _Items:
    """A list that is patched, whose items have keys."""

    def __init__(self, present: Sequence[Any], key: str, model: Struct) -> None:
        self._items = list(present)
        self._key = key
        self._read = _reader(key)
        self._model = model
        self._places: dict[str, list[int]] = {}  # keyed by the token of their key
        self._patched: Counter[str] = Counter()
        for place, item in enumerate(present):
            self._places.setdefault(self._read(item), []).append(place)

    def patch(self, item: Any) -> None:
        """Merges, adds or deletes one item. Raises BadRequest."""
        if not isinstance(item, Mapping) or self._key not in item:
            raise errors.BadRequest(
                f"map: {str(item)[:_SHOWN]} does not contain declared merge key: {self._key}"
            )
        token = self._read(item)
        self._patched[token] += 1
        if self._patched[token] > _MOST_OF_ONE:
            shown = str(item[self._key])[:_SHOWN]
            raise errors.BadRequest(f"the patch has more than {_MOST_OF_ONE} items of key {shown}")
        places = self._places.get(token)
        if _directive(item) == "delete":
            for place in self._places.pop(token, ()):
                self._items[place] = _GONE
        elif places:
            self._items[places[0]] = apply(self._items[places[0]], item, self._model)
        else:
            self._places[token] = [len(self._items)]
            self._items.append(apply({}, item, self._model))

    def left(self) -> list[Any]:
        """Returns the items that were not deleted."""
        return [item for item in self._items if item is not _GONE]

    def left_of(self, present: Sequence[Any]) -> list[Any]:
        """Returns the items that there were before the patch, without those it deletes."""
        return [was for was, item in zip(present, self._items, strict=False) if item is not _GONE]


def _directive(item: Any) -> Any:
    return item.get(_PATCH) if isinstance(item, Mapping) else None


def _token(value: Any) -> str:
    """Returns a text by which two values can be compared: equal values have equal texts."""
    return json.dumps(value, sort_keys=True)


def _reader(key: str) -> Callable[[Any], str]:
    """Returns a function that returns the token of a list item's value under `key`."""
    return lambda item: _token(item.get(key) if isinstance(item, Mapping) else None)


def _order_twice(
    merged: list[Any],
    before: tuple[Sequence[Any], Sequence[Any]],
    sent: Sequence[Any],
    order: Sequence[Any] | None,
    token: Callable[[Any], str],
) -> list[Any]:
    """Returns the list in the order of the items that were sent, and then in that of
    $setElementOrder, if there is one. `before` has the items that the server had for each of them.

    Raises BadRequest if the two orders contradict each other.
    """
    merged = _sort_by_order(merged, before[0], sent, token)
    if order is None:
        return merged
    _require_same_order(sent, order, token)
    return _sort_by_order(merged, before[1], order, token)


def _require_same_order(
    sent: Sequence[Any], order: Sequence[Any], token: Callable[[Any], str]
) -> None:
    rest = iter([token(item) for item in order])
    if not all(token(item) in rest for item in sent):  # `in` reads on from the last one
        raise errors.BadRequest(
            f"The order in patch list:\n{_token(sent)[:_SHOWN]}\n doesn't match $setElementOrder "
            f"list:\n{_token(order)[:_SHOWN]}\n"
        )


def _sort_by_order(
    merged: list[Any], present: Sequence[Any], order: Sequence[Any], token: Callable[[Any], str]
) -> list[Any]:
    """Returns the list in the given order. Items that only the server has keep their places among
    those that it had; an item that it had not comes before them.
    """
    wanted, before = _places(order, token), _places(present, token)
    tokens = [(token(item), item) for item in merged]
    ours = deque(sorted((i for i in tokens if i[0] in wanted), key=lambda i: wanted[i[0]]))
    rest = (i for i in tokens if i[0] not in wanted)
    theirs = deque(sorted(rest, key=lambda i: before.get(i[0], len(before))))
    result: list[Any] = []
    while ours and theirs:
        their, our = before.get(theirs[0][0]), before.get(ours[0][0])
        first = their is not None and our is not None and their < our
        result.append((theirs if first else ours).popleft()[1])
    return result + [item for _, item in (*ours, *theirs)]


def _places(items: Sequence[Any], token: Callable[[Any], str]) -> dict[str, int]:
    """Returns the first index of each token."""
    places: dict[str, int] = {}
    for place, item in enumerate(items):
        places.setdefault(token(item), place)
    return places


def _remove_values(merged: dict[str, Any], patch: Json) -> None:
    for name, values in patch.items():
        if name.startswith(_REMOVE) and isinstance(values, list):
            field = name.removeprefix(_REMOVE)
            present = merged.get(field)
            if isinstance(present, list):
                removed = {_token(value) for value in values}
                merged[field] = [value for value in present if _token(value) not in removed]


def _order_unpatched(merged: dict[str, Any], patch: Json, model: Struct) -> None:
    """Sorts the lists that a patch reorders without changing their items."""
    for name in patch:
        field_name = name.removeprefix(_ORDER)
        if not name.startswith(_ORDER) or field_name in patch:
            continue
        present = merged.get(field_name)
        field = structure.field(model, field_name)
        if not isinstance(present, list) or field is None or field.patch_merge is None:
            continue
        order = _order(patch, field_name) or []
        merge = field.patch_merge
        token = _reader(merge.key) if isinstance(merge, MergeKey) else _token
        merged[field_name] = _sort_by_order(present, present, order, token)


def _without_directives(value: Any) -> Any:
    """Returns a value without directives and nulls."""
    if isinstance(value, Mapping):
        return apply({}, value, None)
    if isinstance(value, list):
        return [
            _without_directives(item)
            for item in value
            if not (isinstance(item, Mapping) and item.get(_PATCH) == "delete")
        ]
    return value
