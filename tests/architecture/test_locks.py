"""What is locked is what pyproject.toml asks for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;]+)", re.MULTILINE)


def asked(*extras: str) -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"]]
    lines += [line for extra in extras for line in project["optional-dependencies"][extra]]
    return [Requirement(line) for line in lines if not line.startswith("kcm[")]


@pytest.mark.parametrize(
    ("lock", "wanted"), [("kcm.txt", asked()), ("dev.txt", asked("grpc", "dev"))]
)
def test_every_package_is_locked_in_a_version_that_is_allowed(
    lock: str, wanted: list[Requirement]
) -> None:
    text = (ROOT / "locks" / lock).read_text()
    locked = {name.lower().replace("_", "-"): version for name, version in PINNED.findall(text)}
    for requirement in wanted:
        name = requirement.name.lower().replace("_", "-")
        assert name in locked, f"{name}: run `make lock`"
        assert requirement.specifier.contains(locked[name]), f"{name}: run `make lock`"


def test_every_locked_file_has_a_hash() -> None:
    for lock in ("kcm.txt", "dev.txt"):
        for entry in re.split(r"\n(?=\S)", (ROOT / "locks" / lock).read_text()):
            assert entry.startswith("#") or "--hash=sha256:" in entry, entry
