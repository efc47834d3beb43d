"""Tables as kubectl prints them: columns three spaces apart, whose widths stay while watching."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_GAP = 3


class TextTable:
    """Aligns rows in columns. Later rows get the widths of the longest cells so far."""

    def __init__(self, header: Sequence[str]) -> None:
        self.header = list(header)
        self._widths = [len(cell) for cell in header]

    def lines(self, rows: Iterable[Sequence[str]], *, header: bool = True) -> list[str]:
        """Returns the rows as text, with `header` below the titles."""
        kept = [list(row) for row in rows]
        for row in kept:
            self._widths = [max(w, len(c)) for w, c in zip(self._widths, row, strict=True)]
        return [self._line(row) for row in ([self.header] if header else []) + kept]

    def _line(self, row: Sequence[str]) -> str:
        cells = (cell.ljust(width + _GAP) for cell, width in zip(row, self._widths, strict=True))
        return "".join(cells).rstrip()
