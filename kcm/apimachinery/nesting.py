"""Limits the depth and the size of JSON from outside.

The depth is below that of every parser and of every recursive function over objects: pydantic's
parser allows 200 levels (in a watch or list an object is two levels deeper), its encoder 254,
Python's json some 990. Redis' Lua never parses objects. JSON that passes here exceeds none of
these, and what is stored within these limits (`kcm.store.writes.items`) can be sent back.
"""

from __future__ import annotations

import re

from kcm import errors

MAX_DEPTH = 128  # objects and lists within each other
MAX_PARTS = 100_000  # objects and lists; each takes some microseconds to parse, and a kilobyte
MAX_VALUES = 300_000  # values of all kinds

# An unterminated text counts as one: a second try behind each quote would take quadratic time.
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_BUT_BRACKETS = re.compile(rb"(?:" + _TEXT + rb'|[^\[\]{}"]++)++', re.DOTALL)
_BUT_SIGNS = re.compile(rb"(?:" + _TEXT + rb'|[^\[\]{},"]++)++', re.DOTALL)
_OPENING = frozenset(b"[{")


def check(text: bytes) -> None:
    """Raises BadRequest for JSON that is nested too deep, or has too many values.

    It does not check the syntax otherwise. It takes linear time in the length of the text.
    """
    if text.count(b",") >= MAX_VALUES and _BUT_SIGNS.sub(b"", text).count(b",") >= MAX_VALUES:
        raise errors.BadRequest(f"the body has more than {MAX_VALUES} values")
    if text.count(b"{") + text.count(b"[") <= MAX_DEPTH:
        return
    depth, brackets = 0, _BUT_BRACKETS.sub(b"", text)
    if brackets.count(b"{") + brackets.count(b"[") > MAX_PARTS:
        raise errors.BadRequest(f"the body has more than {MAX_PARTS} objects and lists")
    for sign in brackets:
        depth += 1 if sign in _OPENING else -1
        if depth > MAX_DEPTH:
            raise errors.BadRequest(f"the body is nested deeper than {MAX_DEPTH}")
