"""The functions for lists.

Source: staging/src/k8s.io/apiserver/pkg/cel/library/lists.go, Kubernetes 1.33. Departure: the sum
of an empty list is the integer 0, also where the schema says that the list has durations.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

_KINDS: tuple[tuple[type, ...], ...] = (
    (bool,), (int, float), (str,), (bytes, bytearray), (datetime,), (timedelta,)
)  # fmt: skip


def is_sorted(items: Sequence[Any]) -> bool:
    _require_comparable(items)
    return all(left <= right for left, right in itertools.pairwise(items))


def sum_up(items: Sequence[Any]) -> Any:
    kind = _require_comparable(items)
    if kind == (timedelta,):
        return _to_cel(sum(items, start=timedelta()))
    if items and kind != (int, float):
        raise ValueError("no such overload")
    return sum(items)


def find_least(items: Sequence[Any]) -> Any:
    return _choose("min", min, items)


def find_greatest(items: Sequence[Any]) -> Any:
    return _choose("max", max, items)


def _choose(name: str, choose: Callable[[Sequence[Any]], Any], items: Sequence[Any]) -> Any:
    _require_comparable(items)
    if not items:
        raise ValueError(f"{name} called on empty list")
    return _to_cel(choose(items))


def index_of(items: Sequence[Any], wanted: Any) -> int:
    """Returns the index of the first item that equals a value, -1 if none does."""
    return next((i for i, item in enumerate(items) if _equal(item, wanted)), -1)


def last_index_of(items: Sequence[Any], wanted: Any) -> int:
    """Returns the index of the last item that equals a value, -1 if none does."""
    places = range(len(items) - 1, -1, -1)
    return next((i for i in places if _equal(items[i], wanted)), -1)


def _require_comparable(items: Sequence[Any]) -> tuple[type, ...]:
    """Returns the types of which all items are; of an empty list, none.

    Raises ValueError if there are no such types.
    """
    if not items:
        return ()
    for kind in _KINDS:
        # a truth value is an integer in Python, and not in CEL
        if all(isinstance(item, kind) and (bool in kind or not _is_truth(item)) for item in items):
            return kind
    raise ValueError("no such overload")


def _is_truth(value: Any) -> bool:
    return value is True or value is False


def _equal(left: Any, right: Any) -> bool:
    """Reports whether values are equal in CEL."""
    if _is_truth(left) != _is_truth(right):
        return False
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        pairs = zip(left, right, strict=False)
        return len(left) == len(right) and all(itertools.starmap(_equal, pairs))
    try:
        return bool(left == right)
    except TypeError:  # a type compares with types only
        return False


def _to_cel(value: Any) -> Any:
    """Returns a value in a form that the library takes back."""
    if isinstance(value, timedelta):
        from google.protobuf.duration_pb2 import Duration  # noqa: PLC0415 - see `expressions`

        duration = Duration()
        duration.FromTimedelta(value)
        return duration
    if isinstance(value, datetime):
        from google.protobuf.timestamp_pb2 import Timestamp  # noqa: PLC0415 - see `expressions`

        timestamp = Timestamp()
        timestamp.FromDatetime(value)
        return timestamp
    return value
