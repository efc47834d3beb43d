"""The locks: their versions, and what pip needs to install exactly them."""

from __future__ import annotations

import runpy
from pathlib import Path

LOCK = runpy.run_path(str(Path(__file__).parents[3] / "tools" / "lock.py"))


def test_versions_are_read_with_and_without_extras(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("a==1.0 \\\n    --hash=sha256:0\nb[one, two]==2.1 ; python_version < '3.12'\n")
    assert LOCK["read_versions"](lock) == {"a": "1.0", "b": "2.1"}


def test_locks_name_the_extras_that_packages_ask_for() -> None:
    """Without them, pip refuses the lock on the day of the package's next release."""
    text = (LOCK["ROOT"] / "locks" / "dev.txt").read_text()
    assert "\ncoverage[toml]==" in text
    assert "\nkombu[redis]==" in text
