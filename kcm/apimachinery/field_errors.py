"""Builds field errors, with one function for each kind of fault, and upstream's messages.

Errors that are built while `collect` runs a check count for its limit. Source:
staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go, Kubernetes 1.33.
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


ROOT = "[]"  # the path of the whole object, as upstream prints it

MOST = 1000
"""The most faults that are reported of one object. More could make a response a hundred times the
size of the object."""

_collected: ContextVar[Faults | None] = ContextVar("collected", default=None)


class _TooManyError(Exception):
    """The check has found `MOST` faults."""


def collect(check: Callable[[], Faults]) -> Faults:
    """Returns the faults that a check finds, at most `MOST`.

    After that many the check is aborted.
    """
    faults: Faults = []
    before = _collected.set(faults)
    try:
        return check()[:MOST]
    except _TooManyError:
        return faults
    finally:
        _collected.reset(before)


def collect_tentative(check: Callable[[], Iterable[FieldError]]) -> Faults:
    """Returns faults that may not count in the end, such as those of one schema of `anyOf`.

    They do not count for the limit of `collect`.
    """
    before = _collected.set(None)
    try:
        return list(islice(check(), MOST))
    finally:
        _collected.reset(before)


def _add(fault: FieldError) -> FieldError:
    collected = _collected.get()
    if collected is not None:
        collected.append(fault)
        if len(collected) == MOST:
            raise _TooManyError
    return fault


def required(path: str, detail: str = "") -> FieldError:
    return _add(FieldError("Required value", path, "", detail))


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return _add(FieldError("Invalid value", path, plain(value), detail))


def invalid_without_value(path: str, detail: str) -> FieldError:
    """Returns an error whose message does not show the field's value, as some of upstream's."""
    return _add(FieldError("Invalid value", path, Verbatim(detail)))


def invalid_all(path: str, value: Any, details: Iterable[str]) -> Faults:
    """Returns one error for each message about the same value."""
    return [invalid(path, value, detail) for detail in details]


def duplicate(path: str, value: Any, detail: str = "") -> FieldError:
    return _add(FieldError("Duplicate value", path, plain(value), detail))


def not_found(path: str, value: Any, detail: str = "") -> FieldError:
    return _add(FieldError("Not found", path, plain(value), detail))


def forbidden(path: str, detail: str) -> FieldError:
    return _add(FieldError("Forbidden", path, "", detail))


def not_supported(path: str, value: Any, supported: Sequence[str]) -> FieldError:
    listed = ", ".join(f'"{value_text}"' for value_text in supported)
    return _add(FieldError("Unsupported value", path, plain(value), f"supported values: {listed}"))


def too_long(path: str, limit: int) -> FieldError:
    return _add(FieldError("Too long", path, "", f"may not be more than {limit} bytes"))


def too_many(path: str, count: int, limit: int) -> FieldError:
    return _add(FieldError("Too many", path, count, f"must have at most {limit} items"))


def not_negative(path: str, value: int | None) -> Faults:
    return [invalid(path, value, NOT_NEGATIVE)] if value is not None and value < 0 else []


def require_unchanged(path: str, new: Any, old: Any) -> Faults:
    """Returns an error if an immutable field has changed. An absent map equals an empty one."""
    return [] if (new or None) == (old or None) else [invalid(path, new, IMMUTABLE)]


def one_of(path: str, value: str | None, supported: Sequence[str]) -> Faults:
    """Returns an error if a required field is empty or has an unsupported value."""
    if not value:
        return [required(path)]
    return [] if value in supported else [not_supported(path, value, supported)]


def plain(value: Any) -> Any:
    """Returns the value as JSON values, for messages."""
    if isinstance(value, Model):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
