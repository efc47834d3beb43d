"""RFC 3339 times in UTC: `Time` to the second, `MicroTime` to the microsecond.

Source: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/{time,micro_time}.go, Kubernetes 1.33.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator

_RFC3339 = re.compile(
    r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d+))?(Z|[+-]\d{2}:\d{2})", re.ASCII
)


@lru_cache(maxsize=16384)
def parse_time(text: str) -> datetime:
    """Returns the time in an RFC 3339 text, in UTC, cut to microseconds.

    Raises ValueError.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError("must be a time in RFC 3339, like 2006-01-02T15:04:05Z")
    seconds, fraction, zone = match.groups()
    try:
        moment = datetime.fromisoformat(seconds + zone).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"must be a time in RFC 3339: {error}") from None
    return moment.replace(microsecond=int((fraction or "0")[:6].ljust(6, "0")))


@lru_cache(maxsize=16384)
def format_time(moment: datetime) -> str:
    """Returns the time to the second, as metav1.Time formats it. Fractions are cut off."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


@lru_cache(maxsize=4096)
def format_micro_time(moment: datetime) -> str:
    """Returns the time with six digits of fraction, as metav1.MicroTime formats it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


def shift_time(moment: datetime, seconds: float) -> datetime:
    """Returns the time `seconds` later, or earlier if negative, within the range of a datetime.

    Use it for seconds from users, since the API accepts more of them than a datetime can represent.
    """
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return (_LAST if seconds > 0 else _FIRST).astimezone(moment.tzinfo)


_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(microsecond=0, tzinfo=UTC)


def _instant(value: Any) -> datetime:
    if isinstance(value, str):
        return parse_time(value)
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("must have a time zone")
        return value
    raise ValueError("must be a time in RFC 3339, like 2006-01-02T15:04:05Z")


def _whole_seconds(value: Any) -> datetime:
    moment = _instant(value)
    return moment.replace(microsecond=0) if moment.microsecond else moment


Time = Annotated[
    datetime,
    PlainValidator(_whole_seconds),
    PlainSerializer(format_time, return_type=str, when_used="unless-none"),
]
MicroTime = Annotated[
    datetime,
    PlainValidator(_instant),
    PlainSerializer(format_micro_time, return_type=str, when_used="unless-none"),
]
