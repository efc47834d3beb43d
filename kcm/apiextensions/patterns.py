"""The regular expressions and formats of schemas.

Expressions have Go's syntax. RE2 evaluates them, in time that grows linearly with the text. RE2's
limits on the size of an expression are lower than Go's.

Source of the messages about invalid expressions: Go's regexp/syntax/parse.go.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from functools import lru_cache
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

import re2

_MAX_LENGTH = 16 * 1024  # characters of an expression
_MAX_CLASSES = 500  # Unicode classes in an expression; each takes 0.1 ms to parse, and 30 KB
_MOST_SEARCHED = 256 * 1024 * 1024  # the most characters that one `find_all` may scan
_SHOWN = 80  # characters of a long expression in an error
_GO_WORDS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "pattern too large - compile failed": "expression too large",
}
_ANY_BYTE = re.compile(r"(?:[^\\]|\\[^C])*?\\C", re.DOTALL)
_CLASS = re.compile(r"\\[pP]")


class BadPatternError(ValueError):
    """The expression is invalid. The message is Go's."""

    def __init__(self, problem: str, where: str) -> None:
        super().__init__(f"error parsing regexp: {problem}: `{where}`")


@lru_cache(maxsize=128)  # each may take 8 MB
def compile_pattern(pattern: str) -> Any:
    """Returns the compiled expression. Raises BadPatternError."""
    if len(pattern) > _MAX_LENGTH or len(_CLASS.findall(pattern)) > _MAX_CLASSES:
        raise BadPatternError("expression too large", pattern[:_SHOWN])
    if _ANY_BYTE.match(pattern):  # Go has no escape for a single byte
        raise BadPatternError("invalid escape sequence", r"\C")
    try:
        return re2.compile(make_encodable(pattern), _options())
    except re2.error as error:
        problem, _, where = error.args[0].decode(errors="replace").partition(": ")
        raise BadPatternError(_GO_WORDS.get(problem, problem), where or pattern) from None


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    return options


def make_encodable(text: str) -> str:
    """Returns the text with U+FFFD for each lone surrogate, as in Go, so that UTF-8 can encode
    it.
    """
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def matches(pattern: str, text: str) -> bool:
    """Reports whether the pattern matches a part of the text.

    An invalid pattern matches any text.
    """
    try:
        return compile_pattern(pattern).search(make_encodable(text)) is not None
    except BadPatternError:
        return True


def find(pattern: str, text: str) -> str:
    """Returns the first match, "" if there is none. Raises BadPatternError."""
    match = compile_pattern(pattern).search(make_encodable(text))
    return str(match[0]) if match else ""


def find_all(pattern: str, text: str, most: int = -1) -> list[str]:
    """Returns the matches, at most `most` of them; -1 means all.

    Raises BadPatternError, and ValueError if the search takes too much: each match may require a
    look at the whole rest of the text.
    """
    text = make_encodable(text)
    matches_found = _searches(compile_pattern(pattern), text)
    return list(matches_found if most < 0 else islice(matches_found, most))


def _searches(pattern: Any, text: str) -> Iterator[str]:
    budget, end = _MOST_SEARCHED, -1
    for match in pattern.finditer(text):
        budget -= len(text) - match.start()
        if budget < 0:
            raise ValueError("too much to search: the text is too long for so many matches")
        if match[0] or match.start() != end:  # Go reports no empty match that abuts another
            yield match[0]
        end = match.end()


def _by(read: Callable[[str], object]) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        try:
            read(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return fits


def _expression(pattern: str) -> Callable[[str], bool]:
    return lambda text: compile_pattern(pattern).fullmatch(make_encodable(text)) is not None


def _moment(text: str) -> None:
    if not _RFC3339.match(text):
        raise ValueError(text)
    datetime.fromisoformat(text.replace("z", "Z"))


def _uri(text: str) -> None:
    if not urlsplit(text).scheme and not text.startswith("/"):
        raise ValueError(text)


_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)\Z", re.ASCII)
_HEX = "[0-9a-fA-F]"
_MAX_HOSTNAME = 255  # characters
_is_hostname = _expression(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?\.?")
_FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date-time": _by(_moment),
    "datetime": _by(_moment),
    "date": _by(date.fromisoformat),
    "byte": _by(lambda text: base64.b64decode(text, validate=True)),
    "ipv4": _by(ipaddress.IPv4Address),
    "ipv6": _by(ipaddress.IPv6Address),
    "cidr": _by(lambda text: ipaddress.ip_interface(text) if "/" in text else int("not one")),
    "uri": _by(_uri),
    "email": _expression(r"[^@\s]+@[^@\s]+"),
    "hostname": lambda text: len(text) <= _MAX_HOSTNAME and _is_hostname(text),
    "mac": _expression(rf"{_HEX}{{2}}([:-]{_HEX}{{2}}){{5}}"),
    "uuid": _expression(rf"{_HEX}{{8}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{12}}"),
    "duration": _expression(r"-?((\d+(\.\d*)?|\.\d+)\s*(ns|us|µs|ms|s|m|h|d|w)\s*)+|0"),
}  # fmt: skip


def has_format(name: str, text: str) -> bool:
    """Reports whether a text has the format of this name. An unknown format fits any text."""
    fits = _FORMATS.get(name)
    return fits is None or fits(text)
