"""The simple JSONPaths that definitions may use.

They consist of `.spec.a`, `['b']`, `[0]`, `[-1:]`, `[*]`, `..name` (once) and `[?(@.a=="b")]`.

Source: staging/src/k8s.io/client-go/util/jsonpath and `isSimpleJSONPath`-like rules in
staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation, Kubernetes 1.33.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

Step = Callable[[Any], Iterator[Any]]

_LONGEST = 1000  # characters of a path
_SHOWN = 80  # characters of a path in an error

_TOKEN = re.compile(
    r"""
    \.(?P<name>(?:\\.|[^.\[\]\\])+)
    | \[(?P<quote>['"])(?P<quoted>(?:\\.|(?!(?P=quote)).)*)(?P=quote)\]
    | \[(?P<index>-?[0-9]{1,18})\]
    | \[(?P<slice>(?:-?[0-9]{1,18})?:(?:-?[0-9]{1,18})?(?::[0-9]{0,18})?)\]
    | \.\.(?P<descendants>(?:\\.|[^.\[\]\\])+)
    | (?P<all>\[\*\]|\.\*)
    | (?P<unnamed>\.(?:\.\.)?)\Z  # a field without a name, of the value or anywhere in it
    | \[\?\(\s*@(?P<left>[^=!<>\s]*)\s*(?:(?P<op>==|!=|>=|<=|>|<)\s*(?P<right>[^)]+?))?\s*\)\]
    """,
    re.VERBOSE,
)


class BadPathError(ValueError):
    """The path is not a simple JSONPath."""


@lru_cache(maxsize=1024)
def parse(path: str) -> tuple[Step, ...]:
    """Returns the steps of a path, each a function from a value to the values below it.

    Raises BadPathError.
    """
    steps, position, descents = [], 0, 0
    if len(path) > _LONGEST:
        raise BadPathError(f"path {path[:_SHOWN]!r}... is longer than {_LONGEST} characters")
    text = path if path[:1] in {".", "["} else f".{path}"
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise BadPathError(f"unrecognized path {path!r} at {text[position:]!r}")
        steps.append(_step(token))
        descents += token["descendants"] is not None
        position = token.end()
    if descents > 1:  # each multiplies the work of the next one
        raise BadPathError(f"path {path!r} has more than one recursive descent")
    return tuple(steps)


def find(path: str, value: Any) -> list[Any]:
    """Returns all values at a path. Raises BadPathError."""
    values = [value]
    for step in parse(path):
        values = [inner for outer in values for inner in step(outer)]
    return values


def _step(token: re.Match[str]) -> Step:
    if token["all"] or token["name"] == "*":
        return _everything
    if token["unnamed"]:
        return _member("")
    if token["index"]:
        return _item(int(token["index"]))
    if token["slice"]:
        return _items(token["slice"])
    if token["descendants"]:
        return _descendants(_unescape(token["descendants"]))
    if token["left"] is not None:
        return _filter(token["left"], token["op"], token["right"])
    name = token["name"] if token["name"] is not None else token["quoted"]
    return _member(_unescape(name))


def _unescape(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)


def _member(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _item(index: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _items(text: str) -> Step:
    start, end, step = (int(part) if part else None for part in (text + ":").split(":")[:3])

    def choose(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value[start : end : step or None]

    return choose


def _descendants(name: str) -> Step:
    """Returns a step to the values of all fields of this name, at any depth, in their order."""

    def step(value: Any) -> Iterator[Any]:
        waiting = [value]
        while waiting:
            outer = waiting.pop()
            if isinstance(outer, dict):
                if name in outer:
                    yield outer[name]
                waiting.extend(reversed(outer.values()))
            elif isinstance(outer, list):
                waiting.extend(reversed(outer))

    return step


def _everything(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()


_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
}


def _filter(left: str, operator: str | None, right: str | None) -> Step:
    wanted = _literal(right or "")

    def keeps(item: Any) -> bool:
        values = find(left, item) if left else [item]
        if not values or operator is None:
            return bool(values)
        try:
            return _COMPARED[operator](values[0], wanted)
        except TypeError:
            return False

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from (item for item in value if keeps(item))

    return step


def _literal(text: str) -> Any:
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
