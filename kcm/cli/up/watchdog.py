"""A process that outlives `kcm up` for one purpose: to end its children if it cannot.

`kcm up` writes `add PID STAGE` and `remove PID` lines into its standard input. The end of the input
without a `done` means that `kcm up` was killed; the watchdog then ends the stages in order, as `kcm
up` would have. A pipe, unlike Linux' parent-death signal, keeps the order and works on every
system.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable

from kcm.cli.up import groups

PATIENCE = 3.0  # seconds for each stage


def watch(lines: Iterable[str]) -> dict[int, int]:
    """Reads lines to their end, and returns the children left behind, with their stages."""
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


def end_all(children: dict[int, int], patience: float = PATIENCE) -> None:
    """Ends the children, stage by stage."""
    for stage in sorted(set(children.values())):
        groups.end([pid for pid, own in children.items() if own == stage], patience)


def main() -> None:
    """Watches standard input. It ignores signals for the terminal's group."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    end_all(watch(sys.stdin))


if __name__ == "__main__":
    main()
