"""Commands as they are sent to Redis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hiredis

Argument = str | bytes | int | float
Command = Sequence[Argument]  # its name, which may be of two words, then its arguments
Reply = Any


def encode(argument: Argument) -> Argument:
    """Returns an argument in a form that the driver sends, even for names that are not UTF-8."""
    if isinstance(argument, str) and not argument.isascii():
        return argument.encode("utf-8", "surrogateescape")
    return argument


def pack(command: Command) -> bytes:
    """Returns a command in the form of Redis' protocol."""
    name = command[0]
    if isinstance(name, str) and " " in name:  # "SCRIPT LOAD" is sent as two arguments
        command = [*name.split(), *command[1:]]
    arguments: Any = tuple(map(encode, command))  # the stub knows tuples of one only
    packed: bytes = hiredis.pack_command(arguments)
    return packed


def to_text(argument: Argument) -> str:
    """Returns an argument for people."""
    return argument.decode(errors="replace") if isinstance(argument, bytes) else str(argument)


def name_keys(command: Command) -> str:
    """Returns the keys of a command for people: all streams that it reads, or the first key."""
    keys = command[1:2]
    if "STREAMS" in command:
        streams = command[command.index("STREAMS") + 1 :]
        keys = streams[: len(streams) // 2]
    return ", ".join(map(to_text, keys))
