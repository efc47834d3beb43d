"""The watchdog: a process that stops the children of `kcm up` if that was killed.

`kcm up` writes lines `add PID STAGE` and `remove PID` to its standard input. If the input ends
without a `done`, `kcm up` was killed; the watchdog then stops the children stage by stage, as `kcm
up` would have. Unlike Linux' parent-death signal, a pipe keeps the order and works on every system.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable

from kcm.cli.up import groups

PATIENCE = 3.0  # seconds for each stage


def watch(lines: Iterable[str]) -> dict[int, int]:
    """Reads lines until the input ends. Returns the stages of the children left behind by pid."""
    children: dict[int, int] = {}
    for line in lines:
        match line.split():
            case ["add", pid, stage]:
                children[int(pid)] = int(stage)
            case ["remove", pid]:
                children.pop(int(pid), None)
            case ["done"]:
                return {}
    return children


def stop_all(children: dict[int, int], patience: float = PATIENCE) -> None:
    """Stops the children, stage by stage. `patience` is in seconds."""
    for stage in sorted(set(children.values())):
        groups.stop([pid for pid, own in children.items() if own == stage], patience)


def main() -> None:
    """Watches standard input. Ignores signals, which the terminal sends to all processes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    stop_all(watch(sys.stdin))


if __name__ == "__main__":
    main()
