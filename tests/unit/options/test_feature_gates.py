from __future__ import annotations

import pytest

from kcm import errors
from kcm.options.feature_gates import AUTHORIZE_CREATE_OF_STREAMS, DEFAULTS, parse


def test_gates_have_their_defaults_unless_the_flag_sets_them() -> None:
    assert parse("") == DEFAULTS
    assert parse(f" {AUTHORIZE_CREATE_OF_STREAMS} = False ,")[AUTHORIZE_CREATE_OF_STREAMS] is False


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Unknown=true", "kcm does not act on a feature gate Unknown"),
        (f"{AUTHORIZE_CREATE_OF_STREAMS}=yes", "must be true or false, not yes"),
        (AUTHORIZE_CREATE_OF_STREAMS, "must be true or false, not nothing"),
    ],
)
def test_what_is_no_gate_is_refused(text: str, why: str) -> None:
    with pytest.raises(errors.ConfigurationError, match=why):
        parse(text)
