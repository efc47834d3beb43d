"""How a rule reports a fault: one constructor per kind of fault, in upstream's words.

Source: staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from itertools import islice
from typing import Any

from kcm.apimachinery.base import Model
from kcm.errors import FieldError, Verbatim

Faults = list[FieldError]

NOT_NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"


MOST = 1000
"""Faults that are told of one object; one that has more could else be answered with a
hundred times its size."""

_found: ContextVar[Faults | None] = ContextVar("found", default=None)


class _TooManyError(Exception):
    """There are as many faults as are told."""


def first(check: Callable[[], Faults]) -> Faults:
    """The faults that a check finds, at most `MOST`: where there are more, it is not ended."""
    found: Faults = []
    before = _found.set(found)
    try:
        return check()[:MOST]
    except _TooManyError:
        return found
    finally:
        _found.reset(before)


def tried(check: Iterable[FieldError]) -> Faults:
    """As `first`, for faults that may come to nothing, as those of one schema of several do."""
    before = _found.set(None)
    try:
        return list(islice(check, MOST))
    finally:
        _found.reset(before)


def _told(fault: FieldError) -> FieldError:
    found = _found.get()
    if found is not None:
        found.append(fault)
        if len(found) == MOST:
            raise _TooManyError
    return fault


def required(path: str, detail: str = "") -> FieldError:
    return _told(FieldError("Required value", path, "", detail))


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return _told(FieldError("Invalid value", path, plain(value), detail))


def as_such(path: str, detail: str) -> FieldError:
    """A field that is wrong, of which upstream does not print the value."""
    return _told(FieldError("Invalid value", path, Verbatim(detail)))


def invalid_all(path: str, value: Any, details: Iterable[str]) -> Faults:
    """One fault per complaint about the same value."""
    return [invalid(path, value, detail) for detail in details]


def duplicate(path: str, value: Any, detail: str = "") -> FieldError:
    return _told(FieldError("Duplicate value", path, plain(value), detail))


def not_found(path: str, value: Any) -> FieldError:
    return _told(FieldError("Not found", path, plain(value)))


def forbidden(path: str, detail: str) -> FieldError:
    return _told(FieldError("Forbidden", path, "", detail))


def not_supported(path: str, value: Any, supported: Sequence[str]) -> FieldError:
    listed = ", ".join(f'"{one}"' for one in supported)
    return _told(FieldError("Unsupported value", path, plain(value), f"supported values: {listed}"))


def too_long(path: str, limit: int) -> FieldError:
    return _told(FieldError("Too long", path, "", f"may not be more than {limit} bytes"))


def too_many(path: str, count: int, limit: int) -> FieldError:
    return _told(FieldError("Too many", path, count, f"must have at most {limit} items"))


def not_negative(path: str, value: int | None) -> Faults:
    return [invalid(path, value, NOT_NEGATIVE)] if value is not None and value < 0 else []


def unchanged(path: str, new: Any, old: Any) -> Faults:
    """A fault if a field that may not change did; an absent map equals an empty one."""
    return [] if (new or None) == (old or None) else [invalid(path, new, IMMUTABLE)]


def one_of(path: str, value: str | None, supported: Sequence[str]) -> Faults:
    """A required field with an enumerated value."""
    if not value:
        return [required(path)]
    return [] if value in supported else [not_supported(path, value, supported)]


def plain(value: Any) -> Any:
    """The value as JSON would show it, so that a message can print it."""
    if isinstance(value, Model):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
