"""Code and documents refer only to what is in the repository."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

TEXT = frozenset(
    (".py", ".lua", ".md", ".toml", ".yaml", ".yml", ".cfg", ".txt", ".sh", ".svg", ".example")
)
TOP_LEVEL = (
    *("kcm", "workers", "tests", "bench", "tools", "docs", "examples", "deploy"),
    *(".ci", ".github"),
)
NUMBERED = re.compile(r"\bdesigns? (\d{4})\b", re.IGNORECASE)
IN_BACKTICKS = re.compile(r"`([^`\s]+)`")
REPOSITORY_PATH = re.compile(
    r"(?:kcm|workers|tests|docs|examples|bench|deploy|tools)(?:/[\w.-]+)+/?(?<!\.go)"  # upstream's
)
# What was cited once and cannot be read here: a document with decisions D1 to D18, and articles.
OUTSIDE = (
    re.compile(r"\bDESIGN\b"),
    re.compile(r"\bD(?:[1-9]|1[0-8])a?\b"),
    re.compile(r"\b[Ss]eed \d"),
)


@cache
def texts() -> dict[Path, str]:
    """The text files of the repository, by their paths from its root."""
    files = [path for path in ROOT.iterdir() if path.is_file()]
    for folder in TOP_LEVEL:
        files += [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    return {
        path.relative_to(ROOT): path.read_text("utf-8")
        for path in sorted(files)
        if "__pycache__" not in path.parts and _is_text(path)
    }


def _is_text(path: Path) -> bool:
    return path.suffix in TEXT or path.name in ("Makefile", "Dockerfile", ".importlinter", "run")


def lines() -> Iterator[tuple[str, str]]:
    """Each line of the repository, with its place."""
    for path, text in texts().items():
        if path != Path(__file__).relative_to(ROOT):
            for number, line in enumerate(text.splitlines(), 1):
                yield f"{path}:{number}", line


@pytest.mark.parametrize("pattern", OUTSIDE, ids=lambda pattern: pattern.pattern)
def test_nothing_outside_the_repository_is_cited(pattern: re.Pattern[str]) -> None:
    assert not [f"{place}: {line}" for place, line in lines() if pattern.search(line)]


def test_designs_that_are_cited_exist() -> None:
    numbers = {path.name[:4] for path in (ROOT / "docs" / "designs").glob("[0-9]*.md")}
    cited = [(place, number) for place, line in lines() for number in NUMBERED.findall(line)]
    assert cited
    assert not [(place, number) for place, number in cited if number not in numbers]


def test_every_design_is_in_the_index() -> None:
    folder = ROOT / "docs" / "designs"
    index = (folder / "README.md").read_text("utf-8")
    for path in sorted(folder.glob("[0-9]*.md")):
        title = path.read_text("utf-8").splitlines()[0].removeprefix("# ")
        assert f"- [{title}]({path.name})" in index


def test_paths_in_backticks_exist() -> None:
    wrong = []
    for place, line in lines():
        for code in IN_BACKTICKS.findall(line):
            path = code.partition(":")[0]
            if REPOSITORY_PATH.fullmatch(path) and not (ROOT / path).exists():
                wrong.append(f"{place}: {code}")
    assert not wrong
