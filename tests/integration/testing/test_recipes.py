"""The recipes of examples/testing, run as their readers run them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[3]
RECIPES = ROOT / "examples" / "testing" / "test_recipes.py"
PAGE = ROOT / "docs" / "testing-recipes.md"
FUNCTIONS = [
    node
    for node in ast.parse(RECIPES.read_text("utf-8")).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
]
Failures = dict[str, list[str]]  # of each recipe that ran


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> Failures:
    report = tmp_path_factory.mktemp("recipes") / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, f"--junitxml={report}", str(RECIPES)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert report.exists(), done.stdout + done.stderr
    found: Failures = {}
    for case in ElementTree.parse(report).iter("testcase"):
        texts = [part.text or "" for part in case if part.tag in ("failure", "error", "skipped")]
        found.setdefault(case.attrib["name"].partition("[")[0], []).extend(texts)
    return found


@pytest.mark.long
@pytest.mark.parametrize("name", [function.name for function in FUNCTIONS])
def test_a_recipe_works(failures: Failures, name: str) -> None:
    assert not failures[name], "\n".join(failures[name])


def test_there_are_sixteen_recipes_and_the_page_lists_each() -> None:
    page = PAGE.read_text("utf-8")
    assert len(FUNCTIONS) == 16
    for function in FUNCTIONS:
        assert ast.get_docstring(function), f"{function.name} does not say what it shows"
        assert f"| `{function.name}` |" in page


def test_the_code_on_the_page_is_that_of_the_recipes() -> None:
    source, page = RECIPES.read_text("utf-8"), PAGE.read_text("utf-8")
    blocks = [block.partition("```")[0].strip() for block in page.split("```python\n")[1:]]
    assert len(blocks) == 5
    for block in blocks:
        assert block in source, f"the recipe differs from the page:\n{block}"
