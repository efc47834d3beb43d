"""The lines that a script has a container write.

A line is written when the container starts. One that begins with `after 5s:` is written five
seconds later, one with `every 10s:` every ten seconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kcm.apimachinery.durations import parse_seconds

MOST = 100  # lines of a script
SHORTEST = 0.1  # seconds between two lines of a script
_TIMED = re.compile(r"(after|every) ([0-9][0-9.a-z]*):(.*)")


@dataclass(frozen=True, slots=True)
class ScriptLine:
    """A line of a script: `after` seconds from the start, and again `every` so many if not 0."""

    text: str
    after: float = 0.0
    every: float = 0.0


def parse_log(text: str) -> tuple[ScriptLine, ...]:
    """Parses what a container writes, line by line. Raises ValueError."""
    if len(text.splitlines()) > MOST:
        raise ValueError(f"must have at most {MOST} lines, not {len(text.splitlines())}")
    lines = []
    for line in text.splitlines():
        timed = _TIMED.fullmatch(line)
        if timed is None:
            lines.append(ScriptLine(line))
            continue
        seconds, words = parse_seconds(timed[2]), timed[3].strip()
        if timed[1] == "after":
            lines.append(ScriptLine(words, after=max(seconds, 0.0)))
        elif seconds < SHORTEST:
            raise ValueError(f'must be every {SHORTEST}s at most, not "{line}"')
        else:
            lines.append(ScriptLine(words, after=seconds, every=seconds))
    return tuple(lines)
