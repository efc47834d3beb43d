"""Simulated images. There is no registry: scripts decide whether an image can be pulled."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

NOT_FOUND = "failed to pull and unpack image: not found (simulated)"
TOOK = "100ms"  # how long a pull took, according to its Event
# The entrypoints and arguments of images that programs for tests come in.
_COMMANDS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "agnhost": (("/agnhost",), ("pause",)),
    "busybox": ((), ("sh",)),
    "pause": (("/pause",), ()),
}


def size_of(image: str) -> int:
    """Returns the size of an image in bytes, which depends on its name."""
    return 10_000_000 + int(hashlib.sha256(image.encode()).hexdigest()[:6], 16)


def find_command(image: str, command: Sequence[str], args: Sequence[str]) -> Sequence[str]:
    """Returns what a container runs, () if only its image would tell."""
    if command:
        return (*command, *args)
    name = image.rpartition("/")[2].partition("@")[0].partition(":")[0]
    if name not in _COMMANDS:
        return ()
    entrypoint, default = _COMMANDS[name]
    return (*entrypoint, *(args or default))
