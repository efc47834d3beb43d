"""The log of a simulated container: one line that says that the container is simulated."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from kcm.errors import ContainerRuntimeError

LINE = "container {} is simulated: it writes nothing but this line"


def begin(path: str, name: str, now: datetime) -> None:
    """Writes the log with its one line. Raises ContainerRuntimeError."""
    line = f"{now.strftime('%Y-%m-%dT%H:%M:%S.%fZ')} stdout F {LINE.format(name)}\n"
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(line, "utf-8")
    except OSError as error:
        raise ContainerRuntimeError(f"the container's log cannot be written: {error}") from error
