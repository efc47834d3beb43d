"""Every test that the conformance table names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.findall(
    r"`((?:unit:|kubelet/)?(?:\w+/)?test_\w+\.py)(?:::(test_\w+))?` \|$",
    (ROOT / "docs" / "api.md").read_text(),
    re.MULTILINE,
)


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_named_test_exists(file: str, name: str) -> None:
    folder = "unit" if file.startswith("unit:") else "integration"
    path = file.removeprefix("unit:")
    inside = "" if path.startswith("kubelet/") else "apiserver"
    text = (ROOT / "tests" / folder / inside / path).read_text()
    assert not name or f"def {name}(" in text


def test_the_table_is_found() -> None:
    assert len(NAMED) > 60
