"""Validation of amounts of pods: a number or a percentage.

Source: pkg/apis/apps/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

import re

from kcm.apimachinery.field_errors import Faults, invalid, not_negative

_PERCENT = re.compile(r"[0-9]+%", re.ASCII)
_PERCENT_MESSAGE = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or "
    "'93%', regex used for validation is '[0-9]+%')"
)


def positive_int_or_percent(value: int | str, path: str) -> Faults:
    if isinstance(value, int):
        return not_negative(path, value)
    return [] if _PERCENT.fullmatch(value) else [invalid(path, value, _PERCENT_MESSAGE)]


def not_more_than_100_percent(value: int | str, path: str) -> Faults:
    if isinstance(value, str) and amount_of(value) > 100:
        return [invalid(path, value, "must not be greater than 100%")]
    return []


def amount_of(value: int | str) -> int:
    """Returns the number, or the number before the percent sign. Returns 0 for other text."""
    if isinstance(value, int):
        return value
    # Cut, since Python rejects integers of thousands of digits.
    return int(value[:-1].lstrip("0")[:9] or "0") if _PERCENT.fullmatch(value) else 0
