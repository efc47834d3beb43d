"""The functions for quantities and semantic versions.

Source: staging/src/k8s.io/apiserver/pkg/cel/library/{quantity,semverlib}.go, Kubernetes 1.33.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from kcm.apiextensions.cel.library.tagged import QUANTITY, SEMVER, is_tagged, tag, untag
from kcm.apimachinery.quantity import Quantity

_NANO = 10**9
_MILLISECOND = timedelta(milliseconds=1)
_INT64 = range(-(2**63), 2**63)
_MOST = 256  # characters of a version
_NUMBER = r"(0|[1-9]\d*)"
_SEMVER = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?", re.ASCII
)
_LOOSE = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(.*)", re.ASCII | re.DOTALL)


# --- quantities


def quantity(text: str) -> dict[str, Any]:
    return tag(QUANTITY, str(Quantity(text).nanos))


def is_quantity(text: str) -> bool:
    try:
        Quantity(text)
    except ValueError:
        return False
    return True


def _nanos(value: Any) -> int:
    return int(untag(value, QUANTITY))


def sign(value: Any) -> int:
    nanos = _nanos(value)
    return (nanos > 0) - (nanos < 0)


def is_integer(value: Any) -> bool:
    nanos = _nanos(value)
    return nanos % _NANO == 0 and nanos // _NANO in _INT64


def as_integer(value: Any) -> int:
    if not is_integer(value):
        raise ValueError("cannot convert value to integer")
    return _nanos(value) // _NANO


def as_approximate_float(value: Any) -> float:
    return _nanos(value) / _NANO


def add(value: Any, other: Any) -> dict[str, Any]:
    return tag(QUANTITY, str(_nanos(value) + _operand(other)))


def sub(value: Any, other: Any) -> dict[str, Any]:
    return tag(QUANTITY, str(_nanos(value) - _operand(other)))


def _operand(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value * _NANO
    return _nanos(value)


# --- semantic versions


def semver(text: str, normalize: bool = False) -> dict[str, Any]:
    version = _normalize(text) if normalize else text
    match = _SEMVER.fullmatch(version) if len(version) <= _MOST else None
    if match is None or not _has_sound_parts(match[4]) or not _has_parts(match[5]):
        raise ValueError(f'the text "{text[:_MOST]}" is no semantic version')
    return tag(SEMVER, version.partition("+")[0])  # build metadata does not count in comparisons


def is_semver(text: str, normalize: bool = False) -> bool:
    try:
        semver(text, normalize)
    except ValueError:
        return False
    return True


def _normalize(text: str) -> str:
    """Returns a version without its `v` and leading zeros, and with all three numbers."""
    match = _LOOSE.fullmatch(text) if len(text) <= _MOST else None
    if match is None:
        return text
    numbers = ".".join(str(int(part or 0)) for part in match.groups()[:3])
    return numbers + match[4]


def _has_parts(text: str | None) -> bool:
    return text is None or all(text.split("."))


def _has_sound_parts(text: str | None) -> bool:
    """Reports whether the parts of a pre-release are not empty, and numbers have no leading 0."""
    parts = text.split(".") if text is not None else []
    return all(
        part and not (part.isdigit() and len(part) > 1 and part.startswith("0")) for part in parts
    )


def _semver_key(value: Any) -> tuple[Any, ...]:
    """Returns what versions are ordered by."""
    numbers, _, rest = str(untag(value, SEMVER)).partition("-")
    # A number is less than a word, and a version with a pre-release less than one without.
    parts = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in rest.split(".")]
    return (*map(int, numbers.split(".")), not rest, parts if rest else [])


def major(value: Any) -> int:
    return int(_semver_key(value)[0])


def minor(value: Any) -> int:
    return int(_semver_key(value)[1])


def patch(value: Any) -> int:
    return int(_semver_key(value)[2])


# --- both


def compare_to(value: Any, other: Any) -> int:
    """Returns -1, 0 or 1 for a quantity or version that is less, equal or greater."""
    if is_tagged(value, SEMVER):
        version, other_version = _semver_key(value), _semver_key(other)
        return (version > other_version) - (version < other_version)
    nanos, other_nanos = _nanos(value), _nanos(other)
    return (nanos > other_nanos) - (nanos < other_nanos)


def is_less_than(value: Any, other: Any) -> bool:
    return compare_to(value, other) < 0


def is_greater_than(value: Any, other: Any) -> bool:
    return compare_to(value, other) > 0


def milliseconds(value: Any, zone: str = "") -> int:
    """Returns a duration in milliseconds, or the milliseconds of a moment, the same in any zone."""
    if isinstance(value, timedelta):
        return int(value / _MILLISECOND)
    if isinstance(value, datetime):
        return value.microsecond // 1000
    raise ValueError("no matching overload for getMilliseconds")
