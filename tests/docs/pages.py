"""The documents: their paths, and the fenced blocks in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "tests" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
)

_COMMENT = re.compile(
    r"<!-- (?P<what>not run|until Ctrl-C|exit code|with kubectl|with helm)(?:: (?P<value>.+))? -->"
)


@dataclass(frozen=True)
class Block:
    """Holds a fenced block, and what the comment right above it says."""

    page: Path
    line: int
    language: str
    text: str
    not_run: str = ""  # the reason
    until_interrupt: bool = False
    needs_kubectl: bool = False  # run where there is one
    needs_helm: bool = False  # and kubectl
    exit_code: int = 0

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path, *languages: str) -> Iterator[Block]:
    """Yields the page's blocks in these languages, in order."""
    lines = page.read_text("utf-8").splitlines()
    at = 0
    while at < len(lines):
        opening = re.fullmatch(r"```(\w*)", lines[at])
        if opening is None:
            at += 1
            continue
        end = lines.index("```", at + 1)
        block = _block(page, at, opening[1], lines[at + 1 : end], lines[at - 1])
        if block.language in languages:
            yield block
        at = end + 1


def _block(page: Path, at: int, language: str, body: list[str], above: str) -> Block:
    match = _COMMENT.fullmatch(above)
    what, value = (match["what"], match["value"] or "") if match else ("", "")
    return Block(
        page=page,
        line=at + 1,
        language=language,
        text="\n".join(body) + "\n",
        not_run=value if what == "not run" else "",
        until_interrupt=what == "until Ctrl-C",
        needs_kubectl=what in ("with kubectl", "with helm"),
        needs_helm=what == "with helm",
        exit_code=int(value) if what == "exit code" else 0,
    )
