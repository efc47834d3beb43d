"""Suggests known names for a misspelled one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggest(name: str, words: Iterable[str], *, most: int = 3) -> str:
    """Returns " (did you mean a or b?)" with known names similar to `name`, "" if there are
    none.
    """
    close = difflib.get_close_matches(name, list(words), n=most)
    return f" (did you mean {' or '.join(close)}?)" if close else ""
