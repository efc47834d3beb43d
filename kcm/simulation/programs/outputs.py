"""What programs have written, in Redis: the simulator writes it, the API server shows it as logs.

Guarantees: an output that is there is that of a program from its start. It is kept for the newest
two attempts of a container, and goes with its pod, or a day after it was last written, should the
simulator not see the end of the pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kcm.redisio import RedisIO

_EXPIRY = 86400  # seconds
_START = "-"  # the first entry, so that a program without output is known to be one


@dataclass(frozen=True, slots=True)
class Output:
    """Lines that an attempt of a container has written, with their times since 1970."""

    uid: str  # of the pod
    container: str
    attempt: int
    lines: Sequence[tuple[float, str]]
    is_first: bool  # whether it replaces what there is of this attempt


def write_outputs(io: RedisIO, outputs: Iterable[Output]) -> None:
    """Appends lines to outputs. Raises StoreUnavailable and OutOfMemory."""
    commands: list[tuple[str | int | bytes, ...]] = []
    for output in outputs:
        key = io.keys.simulated_output(output.uid, output.container, output.attempt)
        lines = [f"{at:.6f} {text}".encode("utf-8", "replace") for at, text in output.lines]
        if output.is_first:
            old = io.keys.simulated_output(output.uid, output.container, output.attempt - 2)
            commands += [("DEL", key, old), ("RPUSH", key, _START, *lines)]
        elif lines:
            commands.append(("RPUSH", key, *lines))
        commands.append(("EXPIRE", key, _EXPIRY))
    if commands:
        io.pipeline(commands)


def delete_outputs(io: RedisIO, uid: str, attempts: Iterable[tuple[str, int]]) -> None:
    """Deletes the outputs of attempts, by container and number. Raises StoreUnavailable."""
    keys = [io.keys.simulated_output(uid, container, number) for container, number in attempts]
    if keys:
        io.execute("DEL", *keys)


def read_output(
    io: RedisIO, uid: str, container: str, attempt: int
) -> tuple[tuple[datetime, str], ...] | None:
    """Returns what an attempt has written, None if it is no program. Raises StoreUnavailable."""
    raw = io.execute("LRANGE", io.keys.simulated_output(uid, container, attempt), 0, -1)
    if not raw:
        return None
    parts = (entry.decode("utf-8", "replace").partition(" ") for entry in raw[1:])
    return tuple((datetime.fromtimestamp(float(at), UTC), text) for at, _, text in parts)
