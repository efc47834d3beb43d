"""A process runtime in a folder of its own, and helpers for tests of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from kcm.kubelet.cri import (
    ContainerConfig,
    RuntimeContainerState,
    RuntimeContainerStatus,
    SandboxConfig,
)
from kcm.kubelet.runtime.process import processes, records
from kcm.kubelet.runtime.process.options import ProcessOptions
from kcm.kubelet.runtime.process.runtime import ProcessRuntime
from kcm.testing.waiting import until

PATIENCE = 30.0  # seconds
MOST_OF_A_SUPERVISOR = 8_000_000  # bytes


class RealRuntime:
    """A process runtime with one sandbox, and shorthands for its calls."""

    def __init__(self, root: Path, **options: Any) -> None:
        self.root = root
        self.options = ProcessOptions(root=root / "run", addresses=root / "addresses", **options)
        self.runtime = ProcessRuntime(self.options)
        self._number = 0
        self.sandbox = self.run_sandbox()

    def run_sandbox(self, **overrides: Any) -> str:
        self._number += 1
        config = self.config = SandboxConfig(
            **{
                "name": f"pod-{self._number}",
                "namespace": "default",
                "uid": f"uid-{self._number}",
                "log_directory": str(self.root / "logs" / f"pod-{self._number}"),
                **overrides,
            }
        )
        return self.runtime.run_pod_sandbox(config)

    def create(self, *command: str, **overrides: Any) -> str:
        config = ContainerConfig(
            **{"name": "main", "command": command, "log_path": "main/0.log", **overrides}
        )
        return self.runtime.create_container(self.sandbox, config, self.config)

    def start(self, *command: str, **overrides: Any) -> str:
        container = self.create(*command, **overrides)
        self.runtime.start_container(container)
        return container

    def shell(self, script: str, **overrides: Any) -> str:
        return self.start("sh", "-c", script, **overrides)

    def status(self, container: str) -> RuntimeContainerStatus:
        return self.runtime.container_status(container)

    def wait_for_end(self, container: str) -> RuntimeContainerStatus:
        """Waits until the container has exited by itself; returns its status."""
        until(lambda: self.status(container).state is RuntimeContainerState.EXITED)
        return self.status(container)

    def folder(self, container: str) -> Path:
        return self.options.root / "containers" / container

    def supervisor(self, container: str) -> int:
        record = records.read_status(self.folder(container))
        assert record is not None
        return record.supervisor

    def output(self, container: str) -> list[str]:
        """Returns the lines that the container has written, without CRI's prefixes.

        Rotated files are included.
        """
        log = Path(self.status(container).log_path)
        rotated = sorted(log.parent.glob(f"{log.name}.*"))
        lines = b"".join(file.read_bytes() for file in [*rotated, log]).split(b"\n")
        return [line.split(b" ", 3)[3].decode() for line in lines if line]

    def wait_for_lines(self, container: str, *texts: str) -> None:
        """Waits until the log has these lines."""
        until(lambda: set(texts) <= set(self.output(container)), str(texts))

    def reopen(self) -> ProcessRuntime:
        """Returns a new runtime on the same folder, as that of a kubelet that was restarted."""
        self.runtime = ProcessRuntime(self.options)
        return self.runtime

    def close(self) -> None:
        for sandbox in self.runtime.list_pod_sandboxes():
            self.runtime.remove_pod_sandbox(sandbox.id)


def is_alive(pid: int) -> bool:
    return processes.stat(pid) is not None


def memory(pid: int) -> int:
    """Returns the bytes of memory that a process uses (PSS): shared pages count for their share."""
    lines = processes.read(f"/proc/{pid}/smaps_rollup").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024


def numbers(lines: Sequence[str]) -> list[int]:
    return [int(line) for line in lines if line.isdigit()]


def groups_with(pid: int) -> set[Path]:
    """Returns the folders of the control groups that the process belongs to."""
    groups = set()
    for folder, _, _ in os.walk("/sys/fs/cgroup"):
        with suppress(OSError):  # a group that another test has removed meanwhile
            if str(pid) in (Path(folder) / "cgroup.procs").read_text().split():
                groups.add(Path(folder))
    return groups
