"""Reads the termination message of a container.

Source: getTerminationMessage in pkg/kubelet/kuberuntime/kuberuntime_container.go, Kubernetes 1.33.
"""

from __future__ import annotations

import os
from pathlib import Path

from kcm.errors import ContainerConfigError
from kcm.kubelet.files import beneath
from kcm.kubelet.runtime.process.users import Identity

MOST = 4096  # bytes of a message from the message file
LOG_MOST = 2048  # bytes of a message from the log
LOG_LINES = 80

FALLBACK = "FallbackToLogsOnError"


def message(
    message_file: tuple[Path, str] | None, reader: Identity, log: Path, policy: str, *, failed: bool
) -> str:
    """Returns the content of the message file; if there is none, the log's end or "".

    The log is used if the container has failed and the policy demands it. `message_file` is a
    folder and the file's path in it. It is read only if `reader`, the container's user, may read
    it.
    """
    text = _head(*message_file, reader) if message_file is not None else ""
    if text or not failed or policy != FALLBACK:
        return text
    return tail(log)


def _head(root: Path, path: str, reader: Identity) -> str:
    """Returns the beginning of a regular file that the reader may read, else "".

    Other kinds of files could block the reader forever.
    """
    try:
        fd = beneath.open_file(root, path)
    except (OSError, ContainerConfigError):
        return ""  # there is no file, or the container has put something else there
    with os.fdopen(fd, "rb") as file:
        if not reader.reads(os.fstat(fd)):
            return ""
        return file.read(MOST).decode("utf-8", "replace")


def tail(log: Path) -> str:
    """Returns the text of the log's last lines, without CRI's prefixes: at most LOG_MOST bytes."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            # 64 KiB contain 2 KiB of text even if each line has one byte and a prefix of 40.
            file.seek(max(size - 65536, 0))
            ends = file.read().split(b"\n")
    except OSError:
        return ""
    if size > 65536:
        ends = ends[1:]
    texts = [text(line) for line in ends if line]
    return b"".join(texts[-LOG_LINES:])[-LOG_MOST:].decode("utf-8", "replace")


def text(line: bytes) -> bytes:
    """Returns the container's output in one line of a log."""
    parts = line.split(b" ", 3)
    if len(parts) < 4:
        return b""
    return parts[3] + (b"" if parts[2] == b"P" else b"\n")
