"""The page of public names has them all, and its examples run."""

from __future__ import annotations

import re

import pytest

import kcm.sdk
import kcm.testing
from tests.docs.pages import ROOT, Block, blocks

PAGE = ROOT / "docs" / "public-names.md"
EXAMPLES = list(blocks(PAGE, "python"))


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_of_the_page_runs(example: Block) -> None:
    exec(compile(example.text, str(example), "exec"), {"__name__": "example"})


@pytest.mark.parametrize("name", [*kcm.sdk.__all__, *kcm.testing.__all__])
def test_each_public_name_is_used_in_an_example_after_its_import(name: str) -> None:
    uses = [len(re.findall(rf"\b{name}\b", example.text)) for example in EXAMPLES]
    assert max(uses) >= 2


def test_the_names_are_sorted_and_exist() -> None:
    assert all(hasattr(kcm.sdk, name) for name in kcm.sdk.__all__)
    assert all(hasattr(kcm.testing, name) for name in kcm.testing.__all__)
    assert kcm.testing.__all__ == sorted(kcm.testing._PLACES)
    order = sorted(kcm.sdk.__all__, key=lambda n: (not n.isupper(), not n[0].isupper(), n))
    assert kcm.sdk.__all__ == order
