"""What a public project shows strangers first: its licence, metadata, workflow and hooks."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from typing import Any

import pytest
import yaml

from tests.docs.pages import ROOT

PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md")


def project() -> dict[str, Any]:
    """The table `project` of pyproject.toml."""
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return table


def test_the_licence_is_the_one_that_the_metadata_names() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert project()["license"] == "Apache-2.0"
    assert project()["license-files"] == ["LICENSE"]
    assert text.split()[:4] == ["Apache", "License", "Version", "2.0,"]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_front_door_has_a_title(name: str) -> None:
    assert (ROOT / name).read_text("utf-8").startswith("# ")


def test_the_changelog_has_the_version_of_the_package() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert "\n## Unreleased\n" in changelog
    assert f"\n## {project()['version']} - " in changelog


def test_the_workflow_is_one_that_the_forge_accepts() -> None:
    workflow = str(ROOT / ".github" / "workflows" / "ci.yml")
    checker = [sys.executable, "-m", "check_jsonschema"]
    checked = subprocess.run(
        [*checker, "--builtin-schema", "vendor.github-workflows", workflow],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout
    assert "run: .ci/run" in (ROOT / ".github" / "workflows" / "ci.yml").read_text()


def test_the_hooks_use_the_tools_of_the_environment() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    programs = [hook["entry"].split()[0] for hook in hooks]
    assert [name.removeprefix(".venv/bin/") for name in programs] == [
        "ruff", "ruff", "mypy", "lint-imports",
    ]  # fmt: skip
    assert {hook["language"] for hook in hooks} == {"system"}
