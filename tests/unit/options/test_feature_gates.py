from __future__ import annotations

import pytest

from kcm import errors
from kcm.options.feature_gates import AUTHORIZE_CREATE_OF_STREAMS, DEFAULTS, list_gates, parse


def test_gates_have_their_defaults_unless_the_flag_sets_them() -> None:
    assert parse("") == DEFAULTS
    assert parse(f" {AUTHORIZE_CREATE_OF_STREAMS} = False ,")[AUTHORIZE_CREATE_OF_STREAMS] is False


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Unknown=true", "unrecognized feature gate: Unknown"),
        ("EnvFile=true", "did you mean EnvFiles"),
        ("EnvFiles=false", "kcm does not act on the feature gate EnvFiles, which is on by default"),
        ("GitRepoVolumeDriver=true", "the feature gate GitRepoVolumeDriver is locked: it is off"),
        (f"{AUTHORIZE_CREATE_OF_STREAMS}=yes", "must be true or false, not yes"),
        (AUTHORIZE_CREATE_OF_STREAMS, "must be true or false, not nothing"),
    ],
)
def test_what_is_no_gate_is_refused(text: str, why: str) -> None:
    with pytest.raises(errors.ConfigurationError, match=why):
        parse(text)


def test_what_kcm_acts_on_are_gates_of_kubernetes_that_can_be_set() -> None:
    gates = list_gates()
    assert len(gates) > 200
    for name, default in DEFAULTS.items():
        assert (gates[name].default, gates[name].locked) == (default, False)
