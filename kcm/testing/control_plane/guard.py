"""Ends processes and removes a folder when the process of a test is gone, however it went."""

from __future__ import annotations

import subprocess
from pathlib import Path

# Reads until the process that started it writes "done" or is gone. Then it asks the process to end,
# waits for up to ten seconds, kills it, and removes the folder.
_SCRIPT = """
read -r word
[ "$word" = done ] && exit
kill -"$3" "$1"
for _ in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$1" 2>/dev/null || break; sleep 1; done
kill -9 "$1" 2>/dev/null
rm -rf -- "$2"
"""


class Guard:
    """A shell that waits for the end of a pipe, which comes with the end of this process."""

    def __init__(self, pid: int, folder: Path, signal: str = "KILL") -> None:
        """`signal` is the name of the one that ends the process `pid`."""
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, "sh", str(pid), str(folder), signal],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C does not reach it
        )

    def dismiss(self) -> None:
        """Ends the guard, which leaves process and folder alone."""
        self._shell.communicate(b"done\n")
