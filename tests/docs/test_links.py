"""What the documents point to is there: links, headings, paths, names in the code."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(
    r"(?:kcm|workers|tests|docs|examples|bench|deploy)/[\w./-]*|beat_schedule\.py|pyproject\.toml"
    r"|Makefile|docker-compose\.yml|\.importlinter|\.ci/run"
)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The headings' anchors, as GitHub makes them."""
    titles = _HEADING.findall(prose(page))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def symbols(page: Path) -> Iterator[tuple[str, str]]:
    """Path and name of each `path.py:Name.part`."""
    for code in _CODE.findall(prose(page)):
        path, colon, name = code.partition(":")
        if colon and path.endswith(".py") and _PATH.fullmatch(path):
            yield path, name


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(prose(page)):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(target), f"{page.name}: {link}"


@each_page
def test_paths_that_are_named_exist(page: Path) -> None:
    for code in _CODE.findall(prose(page)):
        path = code.partition(":")[0]
        if _PATH.fullmatch(path):
            assert (ROOT / path).exists(), f"{page.name}: {code}"


@each_page
def test_names_in_the_code_exist(page: Path) -> None:
    for path, name in symbols(page):
        owner: object = importlib.import_module(path.removesuffix(".py").replace("/", "."))
        for part in name.split("."):
            owner = getattr(owner, part, None) or _field(owner, part)
            assert owner is not None, f"{page.name}: {path} has no {name}"


def _field(owner: object, name: str) -> object:
    """A field that a class only annotates."""
    return getattr(owner, "__annotations__", {}).get(name)
