"""The state folder's lock, and the processes that an earlier `kcm up` left running."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil

from kcm import errors
from kcm.cli.up import groups
from kcm.cli.up.children import Child

_PATIENCE = 3.0  # seconds for leftovers to stop


class StateFolder:
    """The lock of a state folder, which is held until this process exits or releases it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = -1
        self._record = path / "run" / "up.json"

    def claim(self) -> None:
        """Acquires the lock.

        Raises ConfigurationError, which names the process that holds it.
        """
        for folder in (self.path, self.path / "run", self.path / "log"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.path / "run").chmod(0o700)
        lock = os.open(self.path / "run" / "up.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(lock, 32).decode().strip() or "?"
            os.close(lock)
            raise errors.ConfigurationError(
                f"`kcm up` runs already on {self.path} (pid {holder}): stop it first, or choose "
                "another folder with --state-dir"
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        self._lock = lock

    def record(self, children: Iterable[Child]) -> None:
        """Writes the pids of the running processes into a file, by which leftovers can be found."""
        entries = [
            {"name": child.spec.name, "pid": child.pid, "created": _creation_time(child.pid)}
            for child in children
            if child.pid
        ]
        partial = self._record.with_suffix(".partial")
        partial.write_text(json.dumps({"pid": os.getpid(), "children": entries}))
        partial.replace(self._record)

    def stop_leftovers(self) -> list[str]:
        """Stops the processes that an earlier `kcm up` left running.

        Returns their names and pids.
        """
        left = [entry for entry in self._read_record() if _is_same(entry)]
        for entry in sorted(left, key=lambda entry: str(entry["name"]) == "redis"):
            groups.stop([int(entry["pid"])], _PATIENCE)
        return [f"{entry['name']} (pid {entry['pid']})" for entry in left]

    def release(self) -> None:
        """Releases the lock, and removes the file with the pids."""
        self._record.unlink(missing_ok=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _read_record(self) -> list[dict[str, Any]]:
        try:
            entries = json.loads(self._record.read_text())
            return [entry for entry in entries["children"] if {"pid", "name"} <= entry.keys()]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return []


def _creation_time(pid: int) -> float:
    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return 0.0


def _is_same(entry: dict[str, Any]) -> bool:
    # A pid alone may have been reused by another process.
    return bool(entry.get("created")) and _creation_time(int(entry["pid"])) == entry["created"]
