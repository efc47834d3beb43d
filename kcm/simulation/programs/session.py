"""What a program has while it runs: variables, files, where its output goes, and steps.

Guarantees: a program has at most MOST_STEPS steps, of which a long text costs several.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kcm.simulation.programs.files import ContainerFiles
from kcm.simulation.programs.syntax import NotUnderstood

MOST_STEPS = 2000
MOST_VARIABLES = 64 * 1024  # bytes that a program may add to its environment
_PER_STEP = 4096  # bytes that are as dear as a step

Sink = Callable[[str], None]


class Spent(Exception):  # noqa: N818 - the program runs on
    """the program has done as many steps as it may"""


class Session:
    """A program in one container. Bytes that are not UTF-8 are surrogate escapes in its texts."""

    def __init__(
        self, files: ContainerFiles, environment: Mapping[str, str], write: Sink, name: str = "sh"
    ) -> None:
        """`write` takes what the program writes to its log. `name` stands in messages."""
        self.files = files
        self.variables = dict(environment)
        self.exported = frozenset(environment)
        self.name = name
        self._sinks: Mapping[int, Sink] = {1: write, 2: write}
        self._steps = MOST_STEPS
        self._room = MOST_VARIABLES

    def spend(self, size: int = 0) -> None:
        """Counts a step, and what it costs to handle so many bytes. Raises Spent."""
        size, self.files.built = size + self.files.built, 0
        self._steps -= 1 + size // _PER_STEP
        if self._steps < 0:
            raise Spent

    def assign(self, values: Mapping[str, str]) -> None:
        """Sets variables. Raises NotUnderstood if they are too long."""
        for name, value in values.items():
            self._room -= len(value) + len(name) - len(self.variables.get(name, ""))
            self.variables[name] = value
        if self._room < 0:
            raise NotUnderstood

    def write(self, text: str, descriptor: int = 1) -> None:
        """Writes to the output of the command that runs, or for 2 to its errors."""
        self.spend(len(text))
        self._sinks[descriptor](text)

    def read(self, path: str) -> str:
        """Returns the text of a file. Raises OSError."""
        data = self.files.read(path)
        self.spend(len(data))
        return data.decode("utf-8", "surrogateescape")
