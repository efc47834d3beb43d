"""The commands of scripts, and the programs that containers run without a session.

Source: the utilities of POSIX.1-2017, with the messages of busybox.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Generator, Mapping, Sequence

from kcm.apimachinery.durations import FOREVER
from kcm.simulation.programs import agnhost
from kcm.simulation.programs.session import Session
from kcm.simulation.programs.syntax import NotUnderstood

Waiting = Generator[float, None, int]
_SECONDS = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([smhd]?)", re.ASCII)
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)
_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
}  # fmt: skip
_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": operator.eq, "-ne": operator.ne, "-lt": operator.lt, "-le": operator.le,
    "-gt": operator.gt, "-ge": operator.ge,
}  # fmt: skip


def _echo(session: Session, words: Sequence[str]) -> int:
    given = list(words[1:])
    bare = given[:1] == ["-n"]
    text = " ".join(given[bare:])
    if "\\" in text or (given[bare:] and re.fullmatch(r"-[neE]+", given[bare])):
        raise NotUnderstood  # shells differ in what they make of it
    session.write(text if bare else f"{text}\n")
    return 0


def _cat(session: Session, words: Sequence[str]) -> int:
    if not words[1:] or any(word.startswith("-") for word in words[1:]):
        raise NotUnderstood
    status = 0
    for path in words[1:]:
        try:
            session.write(session.read(path))
        except IsADirectoryError:
            session.write("cat: read error: Is a directory\n", 2)
            status = 1
        except OSError as error:
            session.write(f"cat: can't open '{path}': {error.strerror}\n", 2)
            status = 1
    return status


def _env(session: Session, words: Sequence[str]) -> int:
    if words[1:]:
        raise NotUnderstood
    for name in (name for name in session.variables if name in session.exported):
        session.write(f"{name}={session.variables[name]}\n")
    return 0


def _id(session: Session, words: Sequence[str]) -> int:
    user, group = session.files.user, session.files.group
    if words[1:] in (["-u"], ["-g"]):
        session.write(f"{user if words[1] == '-u' else group}\n")
    elif not words[1:] and user and group and not session.files.has_more_groups:
        session.write(f"uid={user} gid={group} groups={group}\n")
    else:  # the image has names for users and groups
        raise NotUnderstood
    return 0


def _touch(session: Session, words: Sequence[str]) -> int:
    if not words[1:] or any(word.startswith("-") for word in words[1:]):
        raise NotUnderstood
    status = 0
    for path in words[1:]:
        try:
            session.files.write(path, b"", append=True)
        except OSError as error:
            session.write(f"touch: {path}: {error.strerror}\n", 2)
            status = 1
    return status


def _expr(session: Session, words: Sequence[str]) -> int:
    if len(words) != 4 or not (_INTEGER.fullmatch(words[1]) and _INTEGER.fullmatch(words[3])):
        raise NotUnderstood
    left, right = int(words[1]), int(words[3])
    if words[2] in _ARITHMETIC:
        result = _ARITHMETIC[words[2]](left, right)
    elif words[2] == "%" and left >= 0 and right > 0:
        result = left % right
    else:
        raise NotUnderstood
    session.write(f"{result}\n")
    return int(result == 0)


def _test(session: Session, words: Sequence[str]) -> int:
    given = list(words[1:])
    closing = {"[": "]", "[[": "]]"}.get(words[0])
    if closing is not None and (not given or given.pop() != closing):
        raise NotUnderstood
    wanted = True
    while len(given) > 1 and given[0] == "!":
        wanted, given = not wanted, given[1:]
    return int(_holds(session, given) is not wanted)


def _holds(session: Session, given: Sequence[str]) -> bool:
    if len(given) < 2:
        return bool(given and given[0])
    if len(given) == 2:
        return _holds_for_one(session, *given)
    if len(given) > 3:
        raise NotUnderstood
    left, comparison, right = given
    if comparison in ("=", "==", "!="):
        return (left == right) is (comparison != "!=")
    numbers = _INTEGER.fullmatch(left) and _INTEGER.fullmatch(right)
    if comparison not in _COMPARISONS or not numbers:
        raise NotUnderstood
    return _COMPARISONS[comparison](int(left), int(right))


def _holds_for_one(session: Session, question: str, subject: str) -> bool:
    if question in ("-z", "-n"):
        return bool(subject) is (question == "-n")
    if question not in ("-e", "-f", "-d", "-r", "-s"):
        raise NotUnderstood
    try:
        status = session.files.stat(subject)
        content = b"" if status.is_folder or question not in "-r-s" else session.files.read(subject)
    except OSError:
        return False
    return {"-f": not status.is_folder, "-d": status.is_folder, "-s": bool(content)}.get(
        question, True
    )


def _sleep(session: Session, words: Sequence[str]) -> Waiting:
    yield _count_seconds(words[1:])
    return 0


def _count_seconds(words: Sequence[str]) -> float:
    if list(words) == ["infinity"]:
        return FOREVER
    times = [_SECONDS.fullmatch(word) for word in words]
    if not times:
        raise NotUnderstood
    total = 0.0
    for time in times:
        if time is None:
            raise NotUnderstood
        total += float(time[1]) * _UNITS[time[2]]
    return total


def _tail(session: Session, words: Sequence[str]) -> Waiting:
    if list(words[1:]) != ["-f", "/dev/null"]:
        raise NotUnderstood
    yield FOREVER
    return 0


def _pause(session: Session, words: Sequence[str]) -> Waiting:
    yield FOREVER
    return 0


def _at_once(command: Callable[[Session, Sequence[str]], int]) -> Callable[..., Waiting]:
    def run(session: Session, words: Sequence[str]) -> Waiting:
        yield from ()
        return command(session, words)

    return run


_BOTH: Mapping[str, Callable[[Session, Sequence[str]], int]] = {
    "[": _test,
    "[[": _test,
    "cat": _cat,
    "echo": _echo,
    "env": _env,
    "expr": _expr,
    "false": lambda *_: 1,
    "id": _id,
    "test": _test,
    "touch": _touch,
    "true": lambda *_: 0,
}
COMMANDS: Mapping[str, Callable[[Session, Sequence[str]], int]] = {":": lambda *_: 0, **_BOTH}
PROGRAMS: Mapping[str, Callable[[Session, Sequence[str]], Waiting]] = {
    **{name: _at_once(command) for name, command in _BOTH.items()},
    "/agnhost": agnhost.run,
    "/agnhost-2": agnhost.run,
    "/pause": _pause,
    "sleep": _sleep,
    "tail": _tail,
}
OF_SHELL = frozenset({*COMMANDS, *PROGRAMS, "exit", "trap"})
"""The names of the commands that a script may have."""
