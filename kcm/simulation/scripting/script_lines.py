"""The lines that a script has a container write.

A line is written when the container starts. One that begins with `after 5s:` is written five
seconds later, one with `every 10s:` every ten seconds, and one with `at 2006-01-02T15:04:05Z:` at
that time, by the attempt that runs then.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

from kcm.apimachinery.durations import parse_seconds
from kcm.apimachinery.meta_v1 import format_micro_time, parse_time

MOST = 100  # lines of a script
SHORTEST = 0.1  # seconds between two lines of a script
_AT = re.compile(r"at (\d{4}-\S*?Z):(.*)", re.ASCII)
_EXIT = re.compile(r"exit (\d+):?(.*)", re.ASCII)
_UNKNOWN = 127  # the exit code of a shell that does not find a command
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


@dataclass(frozen=True, slots=True)
class ExecAnswer:
    """What a command in a container writes: to stdout, or to stderr if its exit code is not 0."""

    command: str  # a pattern as of a shell, such as `pg_dump *`
    text: str
    code: int = 0


def parse_exec(text: str) -> tuple[ExecAnswer, ...]:
    """Parses answers to commands, line by line: `COMMAND => TEXT`, `COMMAND => exit 3: TEXT`.

    Raises ValueError.
    """
    answers = []
    for line in filter(None, map(str.strip, text.splitlines())):
        command, arrow, said = (part.strip() for part in line.partition("=>"))
        if not (command and arrow):
            raise ValueError(f'must be like "pg_isready => accepting connections", not "{line}"')
        failed = _EXIT.fullmatch(said)
        code, words = (int(failed[1]), failed[2].strip()) if failed else (0, said)
        if code > 255:
            raise ValueError(f"must exit with a code from 0 to 255, not {code}")
        answers.append(ExecAnswer(command, words, code))
    if len(answers) > MOST:
        raise ValueError(f"must have at most {MOST} lines, not {len(answers)}")
    return tuple(answers)


def find_answer(answers: Sequence[ExecAnswer], command: Sequence[str]) -> ExecAnswer:
    """Returns the answer to a command: all lines of the first pattern that matches it."""
    asked = " ".join(command)
    first = next((one for one in answers if fnmatchcase(asked, one.command)), None)
    if first is None:
        return ExecAnswer(asked, f"{asked}: the script of the pod has no answer to this", _UNKNOWN)
    own = [one for one in answers if one.command == first.command]
    return ExecAnswer(asked, "\n".join(one.text for one in own), own[-1].code)


def add_line(log: str, text: str, at: datetime) -> str:
    """Returns a log with a further line at that time. Of too many lines, the oldest are dropped.

    Raises ValueError for more than one line.
    """
    if len(text.splitlines()) != 1:
        raise ValueError(f"must be one line, not {text!r}: call it once for each line")
    lines = [*log.splitlines(), f"at {format_micro_time(at)}: {text}"]
    return "\n".join(lines[-MOST:])
