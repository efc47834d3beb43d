"""Every shell block of the documents does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, blocks
from tests.docs.workplace import HELM, KUBECTL, Workplace

SHELL = ("sh", "bash", "shell", "console")
WITH_COMMANDS = [page for page in PAGES if any(blocks(page, *SHELL))]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_run_in_their_order(workplace: Workplace, page: Path) -> None:
    for block in blocks(page, *SHELL):
        if block.not_run or (block.needs_kubectl and not KUBECTL):
            continue
        if block.needs_helm and not HELM:
            continue
        wrong = workplace.run(block)
        assert not wrong, f"{block}: {block.text}\n{wrong}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_says_its_language(page: Path) -> None:
    assert not [str(block) for block in blocks(page, "")]
