"""`--runtime-config` against what kcm serves."""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.testing.envtest.runtime_config import check_runtime_config


@pytest.mark.parametrize(
    "text", ["", "v1", "apps/v1=true", "api/beta=false,api/ga=true", "batch/v2alpha1=false"]
)
def test_what_is_so_in_any_case_is_accepted(text: str) -> None:
    check_runtime_config(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("apps/v1=false", "kcm serves apps/v1"),
        ("batch/v2alpha1=true", "kcm does not serve batch/v2alpha1"),
        ("api/alpha=true", "on by default"),
        ("apps/v1=perhaps", "invalid value apps/v1=perhaps"),
    ],
)
def test_what_would_change_something_is_refused(text: str, words: str) -> None:
    with pytest.raises(errors.ConfigurationError, match=words):
        check_runtime_config(text)
