"""Regular expressions and formats of schemas.

Expressions are Go's (RE2). Python's have nearly the same syntax; what differs is
translated, and what cannot be is refused when the definition is written.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from functools import lru_cache
from urllib.parse import urlsplit

_CLASSES = {
    "[:alnum:]": "A-Za-z0-9", "[:alpha:]": "A-Za-z", "[:digit:]": "0-9", "[:lower:]": "a-z",
    "[:upper:]": "A-Z", "[:space:]": r"\s", "[:word:]": r"\w", "[:xdigit:]": "0-9A-Fa-f",
    "[:punct:]": r"!-/:-@\[-`{-~", "[:blank:]": r" \t",
}  # fmt: skip


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    """The expression. Raises re.error."""
    for name, inner in _CLASSES.items():
        pattern = pattern.replace(name, inner)
    # RE2's $ is the very end of the text, Python's also stands before a last line end.
    return re.compile(_ENDS.sub(r"\\Z", pattern.replace(r"\z", r"\Z")))


_ENDS = re.compile(r"(?<![\\\[])\$(?=$|[)|])")


def matches(pattern: str, text: str) -> bool:
    """Whether a text matches somewhere; an expression that Python cannot read matches all."""
    try:
        return compiled(pattern).search(text) is not None
    except re.error:
        return True


def _by(read: Callable[[str], object]) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        try:
            read(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return fits


def _expression(pattern: str) -> Callable[[str], bool]:
    known = re.compile(pattern)
    return lambda text: known.fullmatch(text) is not None


def _moment(text: str) -> None:
    if not _RFC3339.match(text):
        raise ValueError(text)
    datetime.fromisoformat(text.replace("z", "Z"))


def _uri(text: str) -> None:
    if not urlsplit(text).scheme and not text.startswith("/"):
        raise ValueError(text)


_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)\Z")
_HEX = "[0-9a-fA-F]"
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
    "hostname": _expression(r"(?=.{1,255}$)[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?\.?"),
    "mac": _expression(rf"{_HEX}{{2}}([:-]{_HEX}{{2}}){{5}}"),
    "uuid": _expression(rf"{_HEX}{{8}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{12}}"),
    "duration": _expression(r"-?((\d+(\.\d*)?|\.\d+)\s*(ns|us|µs|ms|s|m|h|d|w)\s*)+|0"),
}  # fmt: skip


def has_format(name: str, text: str) -> bool:
    """Whether a text has a format; formats that are not known fit all."""
    fits = _FORMATS.get(name)
    return fits is None or fits(text)
