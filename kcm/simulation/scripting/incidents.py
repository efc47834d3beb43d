"""Incidents: what happens to a running container at a moment, besides what its script says.

They are annotations of pods, so that a test or `kubectl annotate` has them happen on any simulated
node. They name a moment, because a container that was started after it is not concerned.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kcm.apimachinery.meta_v1 import format_micro_time, parse_time

OOM_KILLED = "OOMKilled"


@dataclass(frozen=True, slots=True)
class Exit:
    """The exit of the attempt that runs at a moment, in seconds since 1970."""

    at: float
    code: int
    reason: str


def parse_exit(text: str) -> Exit:
    """Parses `2026-01-01T00:00:00.5Z 137 OOMKilled`. The reason may be left out.

    Raises ValueError.
    """
    time, code, reason, *rest = [*text.split(), "", "", ""]
    if not (code.isascii() and code.isdigit() and int(code) <= 255) or any(rest):
        raise ValueError(f'must be like "2006-01-02T15:04:05Z 137 OOMKilled", not "{text}"')
    default = "Error" if int(code) else "Completed"
    return Exit(parse_time(time).timestamp(), int(code), reason or default)


def format_exit(at: datetime, code: int, reason: str = "") -> str:
    """Returns the text that `parse_exit` parses."""
    return f"{format_micro_time(at)} {code} {reason}".rstrip()


def parse_readiness(text: str) -> bool:
    """Parses `true` or `false`. Raises ValueError."""
    if text not in ("true", "false"):
        raise ValueError(f'must be true or false, not "{text}"')
    return text == "true"
