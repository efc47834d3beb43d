"""The difference of two states of an object, as paths with the old and the new value.

Items of a list are told apart by their name, type or the like if each has one of its own, so that a
path reads `status.conditions[Ready].status`; else by their place. Managed fields and the
resourceVersion are left out. Values of Secrets are hidden.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Json = Mapping[str, Any]

_MOST_TEXT = 120  # characters of a value in a text
_NAMES = ("name", "type", "uid", "key", "containerPort", "port", "ip", "topologyKey")
_LEFT_OUT = frozenset({("metadata", "managedFields"), ("metadata", "resourceVersion")})
_WORD = re.compile(r"[\w-]+")
_SECRET_FIELDS = frozenset({"data", "stringData"})
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Absent:
    """The value of a field that is not there. There is one, `ABSENT`."""

    def __repr__(self) -> str:
        return "absent"


class Hidden:
    """A value that is not shown, as it belongs to a Secret. There is one, `HIDDEN`."""

    def __repr__(self) -> str:
        return "(hidden)"


ABSENT: Final = Absent()
HIDDEN: Final = Hidden()


@dataclass(frozen=True, slots=True)
class Change:
    """A changed field. `old` is ABSENT for a new one, and `new` for one that was removed."""

    path: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.path}: {show(self.old)} → {show(self.new)}"


def show(value: Any) -> str:
    """Returns a value as JSON, at most 120 characters of it."""
    if isinstance(value, Absent | Hidden):
        return repr(value)
    text = printable(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= _MOST_TEXT else f"{text[: _MOST_TEXT - 1]}…"


def printable(text: str) -> str:
    """Returns a text in which no character moves the cursor or changes colours."""
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in text)


def diff(old: Json | None, new: Json | None) -> tuple[Change, ...]:
    """Returns what changed between two states of an object, in the order of the paths.

    None stands for an object that is not there: then each field is listed with its value.
    """
    found = list(_differ((), old or {}, new or {}))
    if "Secret" in {(old or {}).get("kind"), (new or {}).get("kind")}:
        found = [(steps, *_hide(steps, before, after)) for steps, before, after in found]
    return tuple(Change(_path(steps), before, after) for steps, before, after in found)


Steps = tuple[str, ...]


def _differ(steps: Steps, old: Any, new: Any) -> Iterator[tuple[Steps, Any, Any]]:
    if steps in _LEFT_OUT:
        return
    if _both(Mapping, old, new):
        before, after = _fields(old), _fields(new)
    elif _both(list, old, new):
        before, after = _items(old, new)
    else:
        if old != new or type(old) is not type(new):  # 1 equals True
            yield steps, old, new
        return
    for name in sorted(before.keys() | after.keys(), key=_natural):
        yield from _differ((*steps, name), before.get(name, ABSENT), after.get(name, ABSENT))


def _both(kind: type, old: Any, new: Any) -> bool:
    """Reports whether both values are of a kind. One that is absent is of the other one's kind, if
    that is not empty.
    """
    values = [value for value in (old, new) if not isinstance(value, Absent)]
    return all(isinstance(value, kind) for value in values) and (len(values) == 2 or bool(*values))


def _fields(value: Any) -> Mapping[str, Any]:
    return {} if isinstance(value, Absent) else {str(name): one for name, one in value.items()}


def _items(old: Any, new: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Returns the items of two lists by how they are told apart."""
    before = [] if isinstance(old, Absent) else old
    after = [] if isinstance(new, Absent) else new
    for name in _NAMES:
        if _tells_apart(name, before) and _tells_apart(name, after):
            return _by(name, before), _by(name, after)
    return _by_place(before), _by_place(after)


def _tells_apart(name: str, items: Sequence[Any]) -> bool:
    if not all(isinstance(item, Mapping) and name in item for item in items):
        return False
    return len({str(item[name]) for item in items}) == len(items)


def _by(name: str, items: Sequence[Any]) -> Mapping[str, Any]:
    return {f"[{item[name]}]": item for item in items}


def _by_place(items: Sequence[Any]) -> Mapping[str, Any]:
    return {f"[{number}]": item for number, item in enumerate(items)}


def _natural(step: str) -> tuple[int, str]:
    """Sorts places in lists by their number."""
    inner = step[1:-1]
    return (int(inner), step) if step.startswith("[") and inner.isdecimal() else (-1, step)


def _path(steps: Steps) -> str:
    path = ""
    for step in steps:
        if step.startswith("["):
            path += printable(step)
        elif not _WORD.fullmatch(step):
            path += f"[{printable(json.dumps(step, ensure_ascii=False))}]"
        else:
            path += f".{step}" if path else step
    return path


def _hide(steps: Steps, old: Any, new: Any) -> tuple[Any, Any]:
    if steps[0] not in _SECRET_FIELDS and _LAST_APPLIED not in steps:
        return old, new
    hidden = [value if isinstance(value, Absent) else HIDDEN for value in (old, new)]
    return hidden[0], hidden[1]
