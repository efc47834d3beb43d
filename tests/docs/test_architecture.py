"""docs/architecture.md names every package and every process that there is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.docs.pages import ROOT
from tests.docs.workplace import Workplace

PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def section(title: str) -> str:
    """The text under a heading of the page."""
    return re.split(r"^## ", PAGE.partition(f"\n## {title}\n")[2], flags=re.MULTILINE)[0]


def commands_of_processes() -> list[str]:
    """What the column "Runs as" of the table of processes has in backticks."""
    rows = [line.split("|") for line in section("Processes").splitlines() if line.startswith("|")]
    return [command for row in rows[2:] for command in re.findall(r"`([^`]+)`", row[2])]


def test_every_package_and_module_has_its_layer() -> None:
    packages = [f"kcm/{path.parent.name}/" for path in (ROOT / "kcm").glob("*/__init__.py")]
    modules = [f"kcm/{path.name}" for path in (ROOT / "kcm").glob("[a-z]*.py")]
    layers = section("Layers")
    assert len(packages) > 10
    assert not [name for name in [*packages, *modules] if f"`{name}`" not in layers]


def test_every_layer_exists() -> None:
    named = re.findall(r"^\|[\s\d]*\| (`[^|]+`) \|", section("Layers"), re.MULTILINE)
    paths = [path for cell in named for path in re.findall(r"`([^`]+)`", cell)]
    assert len(paths) > 20
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_every_process_of_kcm_up_is_named(workplace: Workplace) -> None:
    commands = commands_of_processes()
    running = [process.cmdline() for process in workplace.processes()]
    assert len(running) > 6
    assert not [line for line in running if line and not is_named(line, commands)]


def test_every_module_that_can_be_run_is_named() -> None:
    modules = [
        ".".join(path.parent.relative_to(ROOT).parts)
        for path in [*(ROOT / "kcm").rglob("__main__.py"), *(ROOT / "workers").rglob("__main__.py")]
    ]
    assert modules
    assert not [name for name in modules if f"`{name}`" not in section("Processes")]


def is_named(line: Sequence[str], commands: Sequence[str]) -> bool:
    """Whether one of the commands is a part of a process' command line."""
    # "python -m celery" and "/usr/bin/celery" are one and the same, as are kcm's two forms.
    words = " ".join(line).split()  # the title of a fork is a single word of its command line
    text = " ".join(word.rpartition("/")[2] for word in words).replace("kcm.cli.main", "kcm")
    # Celery's own titles.
    text = re.sub(r"\[celeryd: [^]]*\]", "celery -A workers worker", text)
    text = text.replace("[celery beat]", "celery").replace("celery --quiet", "celery")
    return any(re.search(rf"(?:^| |\.){re.escape(command)}(?: |$)", text) for command in commands)
