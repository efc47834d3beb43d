"""The termination message that a container leaves.

Source: getTerminationMessage in pkg/kubelet/kuberuntime/kuberuntime_container.go, Kubernetes 1.33.
"""

from __future__ import annotations

import os
from pathlib import Path

from kcm.errors import ContainerConfigError
from kcm.kubelet.files import beneath
from kcm.kubelet.runtime.process.users import Identity

MOST = 4096  # bytes of a message from the file
LOG_MOST = 2048  # bytes of one from the log
LOG_LINES = 80

FALLBACK = "FallbackToLogsOnError"


def message(
    message_file: tuple[Path, str] | None, reader: Identity, log: Path, policy: str, *, failed: bool
) -> str:
    """Returns what the message file says; else, if the policy asks for it, the end of the log.

    `message_file` is a folder and the file's path below it. What the container itself could not
    read is not read for it.
    """
    text = _head(*message_file, reader) if message_file is not None else ""
    if text or not failed or policy != FALLBACK:
        return text
    return tail(log)


def _head(root: Path, path: str, reader: Identity) -> str:
    """Returns the beginning of a regular file; any other file could keep the reader forever."""
    try:
        fd = beneath.open_file(root, path)
    except (OSError, ContainerConfigError):
        return ""  # no file, or a trap: as good as no words
    with os.fdopen(fd, "rb") as file:
        if not reader.reads(os.fstat(fd)):
            return ""
        return file.read(MOST).decode("utf-8", "replace")


def tail(log: Path) -> str:
    """Returns the last lines of a CRI log without what CRI adds, at most LOG_MOST bytes."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            # 64 KiB hold 2 KiB of text even when every line is empty but for its 40 byte head.
            file.seek(max(size - 65536, 0))
            ends = file.read().split(b"\n")
    except OSError:
        return ""
    if size > 65536:
        ends = ends[1:]
    texts = [text(line) for line in ends if line]
    return b"".join(texts[-LOG_LINES:])[-LOG_MOST:].decode("utf-8", "replace")


def text(line: bytes) -> bytes:
    """Returns what the container wrote, of one line of a log."""
    parts = line.split(b" ", 3)
    if len(parts) < 4:
        return b""
    return parts[3] + (b"" if parts[2] == b"P" else b"\n")
