"""Shows new lines of the logs, for `kcm up --verbose`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kcm.cli.up.children import Child


class Tail:
    """Passes lines of the children's logs to `report`, each with its child's name."""

    def __init__(self, children: Sequence[Child], report: Callable[[str], None]) -> None:
        self._children = children
        self._report = report
        self._read: dict[str, int] = {}

    def look(self) -> None:
        """Reports the complete lines that were written since the last call."""
        for child in self._children:
            name, log = child.spec.name, child.spec.log
            if not log.exists():
                continue
            start = self._read.setdefault(name, child.log_start)
            if log.stat().st_size < start:  # the log was rotated
                start = 0
            with log.open("rb") as file:
                file.seek(start)
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._read[name] = start + len(whole)
            for line in whole.decode(errors="replace").splitlines():
                self._report(f"{name:>8} | {line}")
