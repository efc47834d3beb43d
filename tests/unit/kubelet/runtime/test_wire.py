"""Fields between NULs."""

from __future__ import annotations

from kcm.kubelet.runtime.process.wire import decode, encode, frame, get_number, get_text


def test_fields_come_back_as_they_were() -> None:
    fields = [("argv", "sh"), ("argv", "a=b\nc"), ("env", "NAME=ü\udcff"), ("empty", "")]
    decoded = decode(encode(fields))
    assert decoded == {"argv": ["sh", "a=b\nc"], "env": ["NAME=ü\udcff"], "empty": [""]}
    assert (get_text(decoded, "argv"), get_text(decoded, "none", "x")) == ("a=b\nc", "x")


def test_numbers_have_a_default() -> None:
    assert (get_number({"n": ["7"]}, "n"), get_number({}, "n")) == (7, 0)


def test_a_message_begins_with_its_length() -> None:
    assert frame(b"abc") == b"\0\0\0\3abc"


def test_nothing_is_nothing() -> None:
    assert decode(b"") == {}
