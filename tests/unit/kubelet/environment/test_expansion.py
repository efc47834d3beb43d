"""The expansion of references in values, by upstream's rules."""

from __future__ import annotations

import pytest

from kcm.errors import ContainerConfigError
from kcm.kubelet.environment.expansion import expand, expand_all, expand_strictly

KNOWN = {"A": "1", "B": "2", "REF": "$(A)", "EMPTY": "", "BLANK NAME": "spaced"}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("", ""),
        ("nothing", "nothing"),
        ("$(A)", "1"),
        ("$(A)$(B)", "12"),
        ("-$(A)-$(B)-", "-1-2-"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$(EMPTY)", ""),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$(A)", "$$(A)"),
        ("$A", "$A"),
        ("$", "$"),
        ("$$", "$"),
        ("a$", "a$"),
        ("$(A", "$(A"),
        ("$(", "$("),
        ("$()", "$()"),
        ("$($(A))", "$($(A))"),
        ("$(REF)", "$(A)"),
        ("$(BLANK NAME)", "spaced"),
        ("$(A))", "1)"),
        ("${A}", "${A}"),
        ("$(A$(B)", "$(A$(B)"),
    ],
)
def test_a_text_is_expanded_once(text: str, expanded: str) -> None:
    assert expand(text, KNOWN.get) == expanded


def test_every_word_of_a_command_is_expanded() -> None:
    assert expand_all(["run", "--to=$(A)"], KNOWN) == ["run", "--to=1"]


def test_a_path_needs_all_its_names() -> None:
    assert expand_strictly("logs/$(A)", KNOWN) == "logs/1"
    with pytest.raises(ContainerConfigError, match='missing value for "UNKNOWN"'):
        expand_strictly("logs/$(UNKNOWN)", KNOWN)
