"""Durations as text, as Go reads and prints them."""

from __future__ import annotations

import re

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)", re.ASCII)
FOREVER = float("inf")


def parse_seconds(text: str) -> float:
    """Returns the seconds that text like `1m30s`, `500ms`, `-2s` or `never` stands for.

    Raises ValueError with an example of a right one.
    """
    if text == "never":
        return FOREVER
    sign, unsigned = (-1.0, text[1:]) if text.startswith("-") else (1.0, text)
    if unsigned == "0":
        return 0.0
    parts = list(_PART.finditer(unsigned))
    if not parts or "".join(part[0] for part in parts) != unsigned:
        raise ValueError(f'must be a duration like "1m30s", "500ms" or "never", not "{text}"')
    return sign * sum(float(part[1]) * _UNITS[part[2]] for part in parts)


def print_seconds(duration: float) -> str:
    """Returns a duration as Go prints it: `10s`, `2m40s`, `1h0m0s`, `1.5s`, `500ms`, `-30s`."""
    if duration < 0:
        return "-" + print_seconds(-duration)
    if 0 < duration < 1:
        return f"{duration * 1000:.0f}ms"
    hours, rest = divmod(duration, 3600)
    minutes, left = divmod(rest, 60)
    text = f"{left:.3f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours:.0f}h{minutes:.0f}m{text}"
    return f"{minutes:.0f}m{text}" if minutes else text
