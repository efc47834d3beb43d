"""Formats ages as kubectl does.

Source: staging/src/k8s.io/apimachinery/pkg/util/duration/duration.go, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import datetime, timedelta

UNKNOWN = "<unknown>"
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 86400 * 365


def human_duration(duration: timedelta | float) -> str:
    """Returns a duration or seconds like `45s`, `2m5s`, `15m`, `5h2m`, `30h`, `3d4h` or `2y10d`."""
    exact = duration.total_seconds() if isinstance(duration, timedelta) else duration
    if exact <= -2:  # clocks differ
        return "<invalid>"
    seconds = max(0, int(exact))
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 10 * _MINUTE:
        return _two(seconds, _MINUTE, "m", 1, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two(seconds, _HOUR, "h", _MINUTE, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two(seconds, _DAY, "d", _HOUR, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    if seconds < 8 * _YEAR:
        return _two(seconds, _YEAR, "y", _DAY, "d")
    return f"{seconds // _YEAR}y"


def _two(seconds: int, unit: int, name: str, part: int, part_name: str) -> str:
    rest = seconds % unit // part
    return f"{seconds // unit}{name}" + (f"{rest}{part_name}" if rest else "")


def age(since: datetime | None, now: datetime) -> str:
    """Returns the time from `since` to `now`, `<unknown>` if `since` is None."""
    return human_duration(now - since) if since else UNKNOWN
