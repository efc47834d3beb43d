"""Messages of errors."""

from __future__ import annotations

from kcm.errors import FieldError


def test_a_long_value_is_cut_in_a_message() -> None:
    message = str(FieldError("Invalid value", "data", "x" * 1_000_000, "is wrong"))
    assert message.startswith('data: Invalid value: "xxx')
    assert message.endswith("... (1000002 characters): is wrong")
    assert len(message) < 1_200
    assert str(FieldError("Invalid value", "data", "x" * 1_000)).endswith('x"')
