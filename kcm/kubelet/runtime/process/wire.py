"""The messages between the runtime and a supervisor: `name=value` fields between NULs.

Neither arguments, environments nor paths can contain a NUL, so that nothing is escaped, and a
supervisor needs no JSON, which costs it a megabyte. Imports nothing.
"""

from __future__ import annotations

Fields = dict[str, list[str]]

HEADER = 4  # bytes: a message on a socket is its length, big endian, and the fields


def encode(fields: list[tuple[str, str]]) -> bytes:
    """Returns the fields in their order; a name may come several times."""
    return "\0".join(f"{name}={value}" for name, value in fields).encode("utf-8", "surrogateescape")


def decode(data: bytes) -> Fields:
    """Returns every name with all its values, in their order."""
    fields: Fields = {}
    for field in data.decode("utf-8", "surrogateescape").split("\0"):
        name, equals, value = field.partition("=")
        if equals:
            fields.setdefault(name, []).append(value)
    return fields


def get_text(fields: Fields, name: str, default: str = "") -> str:
    """Returns the last value of a name."""
    return fields[name][-1] if fields.get(name) else default


def get_number(fields: Fields, name: str) -> int:
    """Returns the last value of a name as a number, 0 without one."""
    text = get_text(fields, name)
    return int(text) if text else 0


def frame(data: bytes) -> bytes:
    """Returns a message for a socket: the data with its length in front."""
    return len(data).to_bytes(HEADER, "big") + data
