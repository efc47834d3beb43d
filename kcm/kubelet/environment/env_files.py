"""Files of environment variables, which containers write for those that start after them.

A line is `NAME='value'`, where the value may have line breaks; nothing in it is expanded.

Source: pkg/kubelet/util/env/env_util.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcm.errors import ContainerConfigError

_BLANK = " \t"
_WRONG = "invalid environment variable format at line {}: {}"


def find_value(text: str, key: str) -> str:
    """Returns the value of the first variable with this name, "" if there is none.

    Raises ContainerConfigError for lines that are wrong, as far as they have to be read.
    """
    return next((value for name, value in _variables(text) if name == key), "")


def _variables(text: str) -> Iterator[tuple[str, str]]:
    lines = enumerate((line.removesuffix("\r") for line in text.split("\n")), 1)
    for number, raw in lines:
        line = raw.lstrip(_BLANK)
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if fault := _name_fault(name, equals):
            raise ContainerConfigError(_WRONG.format(number, fault))
        if value.startswith(tuple(_BLANK)):
            yield name, ""  # as in a shell, where the value would be another word
        elif not value.startswith("'"):
            detail = "value must be enclosed in single quotes"
            raise ContainerConfigError(_WRONG.format(number, detail))
        else:
            yield name, _quoted(value[1:], number, lines)


def _name_fault(name: str, equals: str) -> str:
    if not equals:
        return "missing '='"
    if not name.rstrip(_BLANK):
        return "empty variable name"
    return "whitespace before '=' is not allowed" if name != name.rstrip(_BLANK) else ""


def _quoted(rest: str, began: int, lines: Iterator[tuple[int, str]]) -> str:
    """Returns a value up to the closing quote, of which `rest` is the first line."""
    number, parts = began, []
    while "'" not in rest:
        parts.append(rest)
        following = next(lines, None)
        if following is None:
            raise ContainerConfigError(
                "invalid environment variable format starting at line "
                f"{began}: unclosed single quote"
            )
        number, rest = following
    last, _, after = rest.partition("'")
    comment = after.lstrip(_BLANK)
    if comment and not comment.startswith("#"):
        detail = "unexpected content after closing quote"
        raise ContainerConfigError(_WRONG.format(number, detail))
    return "\n".join([*parts, last])
