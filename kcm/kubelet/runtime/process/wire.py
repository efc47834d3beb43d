"""The format of messages between the runtime and a supervisor: `name=value` fields between NULs.

Arguments, environments and paths cannot contain a NUL, so nothing has to be escaped. It spares a
supervisor JSON, which takes a megabyte of memory. This module imports nothing.
"""

from __future__ import annotations

Fields = dict[str, list[str]]

HEADER = 4  # bytes of the length, big endian, that precedes the fields on a socket


def encode(fields: list[tuple[str, str]]) -> bytes:
    """Returns the encoded fields in their order. A name may occur several times."""
    return "\0".join(f"{name}={value}" for name, value in fields).encode("utf-8", "surrogateescape")


def decode(data: bytes) -> Fields:
    """Returns the values of every name, in their order."""
    fields: Fields = {}
    for field in data.decode("utf-8", "surrogateescape").split("\0"):
        name, equals, value = field.partition("=")
        if equals:
            fields.setdefault(name, []).append(value)
    return fields


def get_text(fields: Fields, name: str, default: str = "") -> str:
    """Returns the last value of a name, or `default` if there is none."""
    return fields[name][-1] if fields.get(name) else default


def get_number(fields: Fields, name: str) -> int:
    """Returns the last value of a name as a number, or 0 if there is none."""
    text = get_text(fields, name)
    return int(text) if text else 0


def frame(data: bytes) -> bytes:
    """Returns a message for a socket: the data preceded by its length."""
    return len(data).to_bytes(HEADER, "big") + data
