"""Reads the end of a container's log, for its termination message.

Source: readLastStringFromContainerLogs in pkg/kubelet/kuberuntime/kuberuntime_container.go,
Kubernetes 1.33.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

MOST = 4096  # bytes of a termination message from its file
LOG_MOST = 2048  # bytes of one from the log
LOG_LINES = 80
FALLBACK = "FallbackToLogsOnError"
"""The policy by which a container without a message that has failed says its log's end."""


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
    return join_last(texts)


def join_last(texts: Sequence[bytes]) -> str:
    """Returns the text of the last of these lines: at most LOG_MOST bytes."""
    return b"".join(texts[-LOG_LINES:])[-LOG_MOST:].decode("utf-8", "replace")


def text(line: bytes) -> bytes:
    """Returns the container's output in one line of a log."""
    parts = line.split(b" ", 3)
    if len(parts) < 4:
        return b""
    return parts[3] + (b"" if parts[2] == b"P" else b"\n")
