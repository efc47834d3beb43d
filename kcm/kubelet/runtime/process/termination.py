"""Reads the termination message of a container.

Source: getTerminationMessage in pkg/kubelet/kuberuntime/kuberuntime_container.go, Kubernetes 1.33.
"""

from __future__ import annotations

import os
from pathlib import Path

from kcm.errors import ContainerConfigError
from kcm.kubelet.files import beneath
from kcm.kubelet.files.log_tail import FALLBACK, MOST, tail
from kcm.kubelet.runtime.process.users import Identity


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
