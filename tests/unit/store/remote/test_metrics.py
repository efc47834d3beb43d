"""Tests the parsing of durations that metrics-server writes."""

from __future__ import annotations

import pytest

# A table of texts is shorter on the parser than through answers of a server.
from kcm.store.remote.metrics import _seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [("15s", 15.0), ("1m0s", 60.0), ("1h0m30s", 3630.0), ("10.123s", 10.123), ("", 0.0), (None, 0)],
)
def test_a_window_is_read(text: str | None, expected: float) -> None:
    assert _seconds(text) == expected
