"""The Python in the documents works."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcm.reconcile.contract import Controller
from kcm.reconcile.plan import Delete, Plan
from kcm.registry import load_module
from kcm.testing.builders import pod
from kcm.testing.views import FakeView
from tests.docs.pages import PAGES, ROOT, Block, blocks

PYTHON = [block for page in PAGES for block in blocks(page, "python")]
CONTROLLERS = [
    block
    for block in PYTHON
    if "(Controller)" in block.text and block.page.name != "public-names.md"  # with its own test
]


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_python_is_python(block: Block) -> None:
    compile(block.text, str(block), "exec")


@pytest.fixture(params=CONTROLLERS, ids=str)
def sweeper(request: pytest.FixtureRequest, tmp_path: Path) -> Controller:
    path = tmp_path / "sweeper.py"
    path.write_text(request.param.text)
    (kind,) = load_module(str(path))
    return kind()


def test_the_example_controller_deletes_what_carries_its_label(sweeper: Controller) -> None:
    doomed, kept = pod("a", labels={"sweep": "yes"}), pod("b")
    view = FakeView(doomed, kept, controller=sweeper)
    assert sweeper.reconcile(doomed.key, view).writes == [Delete(doomed)]
    assert sweeper.reconcile(kept.key, view) == Plan()


def test_there_is_an_example_in_readme_and_guide() -> None:
    pages = [block.page.relative_to(ROOT).as_posix() for block in CONTROLLERS]
    assert pages == ["README.md", "docs/writing-a-controller.md"]
