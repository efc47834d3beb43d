"""Applies JSON patches to JSON values, within budgets.

A small patch must not cause much work. So there are limits on its operations, on the bytes and the
values that it copies, and on the items that it moves within lists. Messages name paths, never
values, which may be large.

Source: vendor/gopkg.in/evanphx/json-patch.v4/patch.go and
staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go, Kubernetes 1.33. As there, `replace`
sets a field that is missing, and `copy` takes a missing field for null. Departure: the limits on
copied values and on moved items, where upstream limits operations and copied bytes only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kcm import errors
from kcm.apiserver.request import MAX_BODY
from kcm.redisio import greenlets

MOST_OPERATIONS = 10_000  # as upstream
MOST_COPIED = MAX_BODY  # bytes of JSON, as upstream's JSONPatchMaxCopyBytes
MOST_COPIED_VALUES = 100_000  # values and keys
MOST_MOVED = 100_000_000  # items of lists, in all operations; that many take 0.1 s

_SHORT_COPY = 16 * 1024  # bytes, in the event loop
_SHORT_MOVE = 1_000_000  # items, in the event loop

_INDEX = re.compile(r"[+-]?[0-9]{1,9}")
_MISSING = "missing value"
_Container = dict[str, Any] | list[Any]


class Unprocessable(errors.ApiError):
    """The server rejected our request due to an error in our request."""

    code = 422
    reason = "Invalid"


class PatchTestFailed(Unprocessable):
    """The value that an operation `test` is about is another one."""


class _RefusedError(Exception):
    """An operation cannot be applied; the message says why."""


class _TestRefusedError(_RefusedError):
    """The value that an operation `test` is about is another one."""


def check_operations(operations: Any) -> Sequence[Mapping[str, Any]]:
    """Returns the operations of a decoded patch. Raises BadRequest and RequestTooLarge."""
    if not isinstance(operations, list) or not all(isinstance(one, dict) for one in operations):
        raise errors.BadRequest("error decoding patch: a JSON patch must be a list of operations")
    if len(operations) > MOST_OPERATIONS:
        raise errors.RequestTooLarge(
            f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, "
            f"got {len(operations)}"
        )
    return operations


def apply(target: dict[str, Any], operations: Sequence[Mapping[str, Any]]) -> Any:
    """Returns the target, which is changed, after all operations.

    Raises Unprocessable for an operation that cannot be applied, or is beyond a limit.
    """
    patched = _Patched(target)
    try:
        for operation in operations:
            patched.apply(operation)
    except _RefusedError as refused:
        shown = errors.shorten(str(refused))
        error = PatchTestFailed if isinstance(refused, _TestRefusedError) else Unprocessable
        raise error(f"the server rejected our request: {shown}") from None
    except RecursionError:
        raise Unprocessable("the server rejected our request: nested too deep") from None
    return patched.document


class _Patched:
    """A document to which operations are applied, and what they have used of the limits."""

    def __init__(self, document: Any) -> None:
        self.document = document
        self._copied = self._copied_values = self._moved = 0

    def apply(self, operation: Mapping[str, Any]) -> None:
        kind = operation.get("op")
        run = self._RUNS.get(kind) if isinstance(kind, str) else None
        if run is None:
            raise _RefusedError(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")
        run(self, operation)

    def _apply_add(self, operation: Mapping[str, Any]) -> None:
        path = _pointer(operation, "path")
        place, key = self._find(
            path, f'add operation does not apply: doc is missing path: "{path}"'
        )
        self._add(place, key, _copy(operation.get("value")), f"error in add for path: '{path}'")

    def _apply_remove(self, operation: Mapping[str, Any]) -> None:
        path = _pointer(operation, "path")
        missing = f'remove operation does not apply: doc is missing path: "{path}"'
        place, key = self._find(path, missing)
        self._remove(place, key, f"error in remove for path: '{path}'")

    def _apply_replace(self, operation: Mapping[str, Any]) -> None:
        path, value = _pointer(operation, "path"), _copy(operation.get("value"))
        if not path:
            if not isinstance(value, dict | list):
                raise _RefusedError("replace operation value must be object or array")
            self.document = value
            return
        missing = f"replace operation does not apply: doc is missing path: {path}"
        place, key = self._find(path, missing)
        if isinstance(place, dict):
            place[key] = value
        else:
            why = f"replace operation does not apply: doc is missing key: {path}: {_MISSING}"
            try:
                place[_item_index(place, key, "")] = value
            except _RefusedError:
                raise _RefusedError(why) from None

    def _apply_move(self, operation: Mapping[str, Any]) -> None:
        source, path = _pointer(operation, "from"), _pointer(operation, "path")
        missing = "move operation does not apply: doc is missing"
        place, key = self._find(source, f"{missing} from path: {source}")
        value = self._remove(place, key, f"error in move for path: '{key}'")
        place, key = self._find(path, f"{missing} destination path: {path}")
        self._add(place, key, value, f"error in move for path: '{path}'")

    def _apply_copy(self, operation: Mapping[str, Any]) -> None:
        source, path = _pointer(operation, "from"), _pointer(operation, "path")
        missing = "copy operation does not apply: doc is missing"
        place, key = self._find(source, f"{missing} from path: {source}")
        value = _get(place, key, f"error in copy for from: '{source}'")
        place, key = self._find(path, f"{missing} destination path: {path}")
        self._charge_copy(value)
        self._add(place, key, _copy(value), "error while adding value during copy")

    def _apply_test(self, operation: Mapping[str, Any]) -> None:
        path, wanted = _pointer(operation, "path"), operation.get("value")
        stored = self.document
        if path:
            missing = f"test operation does not apply: is missing path: {path}"
            place, key = self._find(path, missing)
            stored = _get(place, key, f"error in test for path: '{path}'")
        if not _is_same(stored, wanted):
            raise _TestRefusedError(f"testing value {path} failed: test failed")

    _RUNS: Mapping[str, Callable[[_Patched, Mapping[str, Any]], None]] = {
        "add": _apply_add,
        "remove": _apply_remove,
        "replace": _apply_replace,
        "move": _apply_move,
        "copy": _apply_copy,
        "test": _apply_test,
    }

    def _find(self, path: str, missing: str) -> tuple[_Container, str]:
        """Returns the object or list that holds the value at a path, and the value's key in it."""
        _, *parts = path.split("/")
        place: Any = self.document
        for part in parts[:-1]:
            place = _get(place, _unescape(part), missing)
            if not isinstance(place, dict | list):
                break
        if not parts or not isinstance(place, dict | list):
            raise _RefusedError(f"{missing}: {_MISSING}")
        return place, _unescape(parts[-1])

    def _add(self, place: _Container, key: str, value: Any, fault: str) -> None:
        if isinstance(place, dict):
            place[key] = value
        elif key == "-":
            place.append(value)
        else:
            index = _read_index(key, len(place) + 1, fault)
            self._charge_move(len(place) - index)
            place.insert(index, value)

    def _remove(self, place: _Container, key: str, fault: str) -> Any:
        if isinstance(place, list):
            index = _item_index(place, key, fault)
            self._charge_move(len(place) - index)
            return place.pop(index)
        if key not in place:
            raise _RefusedError(f"{fault}: Unable to remove nonexistent key: {key}: {_MISSING}")
        return place.pop(key)

    def _charge_move(self, items: int) -> None:
        self._moved += items
        greenlets.raise_if_long(self._moved, _SHORT_MOVE)
        if self._moved > MOST_MOVED:
            raise _RefusedError(
                f"Unable to move items of lists, their accumulated number is {self._moved}, "
                f"exceeding the limit {MOST_MOVED}"
            )

    def _charge_copy(self, value: Any) -> None:
        """Counts a value with all that is in it. It stops counting beyond a limit."""
        waiting = [value]
        while waiting:
            item = waiting.pop()
            self._copied_values += 1
            if isinstance(item, dict):
                self._copied_values += len(item)
                self._copied += sum(map(_size, item)) + 2 * len(item)
                waiting.extend(item.values())
            elif isinstance(item, list):
                self._copied += len(item)
                waiting.extend(item)
            self._copied += _size(item)
            greenlets.raise_if_long(self._copied, _SHORT_COPY)
            greenlets.raise_if_long(self._copied_values + len(waiting), greenlets.MOST_VALUES)
            if self._copied > MOST_COPIED:
                raise _RefusedError(
                    "Unable to copy, the accumulated size increase of copy is "
                    f"{self._copied}, exceeding the limit {MOST_COPIED}"
                )
            if self._copied_values + len(waiting) > MOST_COPIED_VALUES:
                raise _RefusedError(
                    "Unable to copy, the accumulated number of copied values is "
                    f"{self._copied_values + len(waiting)}, exceeding the limit "
                    f"{MOST_COPIED_VALUES}"
                )


def _pointer(operation: Mapping[str, Any], name: str) -> str:
    path = operation.get(name)
    if not isinstance(path, str):
        raise _RefusedError(f"{operation['op']} operation failed to decode {name}: {_MISSING}")
    return path


def _unescape(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~") if "~" in part else part


def _get(place: _Container, key: str, fault: str) -> Any:
    """Returns a value in an object or list, None for a field that is missing."""
    return place.get(key) if isinstance(place, dict) else place[_item_index(place, key, fault)]


def _item_index(items: list[Any], key: str, fault: str) -> int:
    return _read_index(key, len(items), fault)


def _read_index(key: str, count: int, fault: str) -> int:
    """Returns the index that a key names, of `count` allowed ones; a negative one counts from the
    end.
    """
    if not _INDEX.fullmatch(key):
        raise _RefusedError(f"{fault}: value was not a proper array index: '{key}'")
    index = int(key)
    if not -count <= index < count:
        raise _RefusedError(
            f"{fault}: Unable to access invalid index: {index}: invalid index referenced"
        )
    return index % count


def _size(value: Any) -> int:
    """Returns the bytes of a value in JSON, without what is in it."""
    if not isinstance(value, str):
        return 2 if isinstance(value, dict | list) else 4
    return 2 + (len(value) if value.isascii() else len(value.encode(errors="replace")))


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _is_same(stored: Any, wanted: Any) -> bool:
    """Reports whether two JSON values are equal, in time linear in `wanted`.

    Python's equality, which takes 1 for true, is fast where they differ.
    """
    return stored == wanted and _write(stored) == _write(wanted)


def _write(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
