"""Durations in Go's notation (`12h0m0s`, `40s`, `100ms`), with a precision of microseconds.

Source: Go's time.ParseDuration and Duration.String, which upstream's flags use.
"""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

FOREVER = float("inf")

_MICROSECONDS = {
    "ns": Fraction(1, 1000),
    "us": Fraction(1),
    "µs": Fraction(1),
    "μs": Fraction(1),
    "ms": Fraction(1000),
    "s": Fraction(10**6),
    "m": Fraction(60 * 10**6),
    "h": Fraction(3600 * 10**6),
}
# The digits have one way to match, so that a long row of them takes time in proportion.
_PART = re.compile(r"(\d++(?:\.\d*+)?|\.\d++)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_MOST_CHARACTERS = 1024
_LONGEST = Fraction(2**63 - 1, 1000)  # microseconds; Go keeps nanoseconds in 64 bits


def parse_duration(text: str) -> timedelta:
    """Returns the duration in the text.

    Raises ValueError for text that is no duration, longer than Go's longest, or more precise than a
    microsecond.
    """
    microseconds = _parse_microseconds(text)
    if abs(microseconds) > _LONGEST:
        raise ValueError(f'duration "{text}" is longer than about 292 years')
    if microseconds.denominator != 1:
        raise ValueError(f'duration "{text}" is finer than a microsecond')
    return timedelta(microseconds=microseconds.numerator)


def parse_fine_seconds(text: str) -> float:
    """Returns the seconds of a duration, which may be more precise than a microsecond.

    Raises ValueError.
    """
    return float(_parse_microseconds(text) / 10**6)


def _parse_microseconds(text: str) -> Fraction:
    sign, unsigned = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if unsigned == "0":
        return Fraction(0)
    if len(text) > _MOST_CHARACTERS:
        raise ValueError(f"must be a duration of at most {_MOST_CHARACTERS} characters")
    total, end = Fraction(0), 0
    while part := _PART.match(unsigned, end):
        total += Fraction(part[1].rstrip(".")) * _MICROSECONDS[part[2]]
        end = part.end()
    if not unsigned or end != len(unsigned):
        raise ValueError(f'must be a duration like "12h0m0s", "40s" or "100ms", not "{text}"')
    return total * sign


def format_duration(duration: timedelta) -> str:
    """Returns the duration in Go's notation."""
    total = duration // timedelta(microseconds=1)
    sign, total = ("-", -total) if total < 0 else ("", total)
    return sign + _format_unsigned(total)


def _format_unsigned(total: int) -> str:
    if total == 0:
        return "0s"
    if total < 1000:
        return f"{total}µs"
    if total < 10**6:
        return f"{_decimal(total, 3)}ms"
    minutes, rest = divmod(total, 60 * 10**6)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{_decimal(rest, 6)}s"
    if hours:
        return f"{hours}h{minutes}m{seconds}"
    return f"{minutes}m{seconds}" if minutes else seconds


def _decimal(value: int, digits: int) -> str:
    whole, rest = divmod(value, 10**digits)
    return f"{whole}.{rest:0{digits}d}".rstrip("0").rstrip(".")


def parse_seconds(text: str) -> float:
    """Returns the seconds of a duration. `never` is FOREVER.

    Raises ValueError.
    """
    if text == "never":
        return FOREVER
    try:
        return parse_duration(text) / timedelta(seconds=1)
    except ValueError as error:
        raise ValueError(f'{error} ("never" is allowed, too)') from None


def format_seconds(seconds: float) -> str:
    """Returns seconds, rounded to milliseconds, in Go's notation: `2m40s`, `500ms`."""
    return format_duration(timedelta(milliseconds=round(seconds * 1000)))


def _from_text(value: Any) -> Any:
    return parse_duration(value) if isinstance(value, str) else value


GoDuration = Annotated[
    timedelta,
    BeforeValidator(_from_text),
    PlainSerializer(format_duration, return_type=str),
]
