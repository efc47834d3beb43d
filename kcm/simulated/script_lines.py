"""The lines that a script has a container write.

A line is written when the container starts. One that begins with `after 5s:` is written five
seconds later, one with `every 10s:` every ten seconds, and one with `at 2006-01-02T15:04:05Z:` at
that time, by the attempt that runs then.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from kcm.apimachinery.durations import parse_seconds
from kcm.apimachinery.times import format_micro_time, parse_time

MOST = 100  # lines of a script
SHORTEST = 0.1  # seconds between two lines of a script
_AT = re.compile(r"at (\d{4}-\S*?Z):(.*)", re.ASCII)
_TIMED = re.compile(r"(after|every) ([0-9][0-9.a-z]*):(.*)")


@dataclass(frozen=True, slots=True)
class ScriptLine:
    """A line of a script: `after` seconds from the start, and again `every` so many if not 0.

    One with the time `at` is written then, and only then.
    """

    text: str
    after: float = 0.0
    every: float = 0.0
    at: datetime | None = None


def parse_log(text: str) -> tuple[ScriptLine, ...]:
    """Parses what a container writes, line by line. Raises ValueError."""
    if len(text.splitlines()) > MOST:
        raise ValueError(f"must have at most {MOST} lines, not {len(text.splitlines())}")
    lines = []
    for line in text.splitlines():
        if dated := _AT.fullmatch(line):
            lines.append(ScriptLine(dated[2].strip(), at=parse_time(dated[1])))
            continue
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


def add_line(log: str, text: str, at: datetime) -> str:
    """Returns a log with a further line at that time. Of too many lines, the oldest are dropped.

    Raises ValueError for more than one line.
    """
    if len(text.splitlines()) != 1:
        raise ValueError(f"must be one line, not {text!r}: call it once for each line")
    lines = [*log.splitlines(), f"at {format_micro_time(at)}: {text}"]
    return "\n".join(lines[-MOST:])
