"""Reads the tables of docs/differences.md, which lists what differs from Kubernetes 1.36."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_PAGE = Path(__file__).parents[3] / "docs" / "differences.md"


@cache
def read_differences(section: str) -> frozenset[str]:
    """Returns the names in the first column of a section's table."""
    text = _PAGE.read_text("utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return frozenset(re.findall(r"^\| `([^`]+)`", text, re.MULTILINE))
