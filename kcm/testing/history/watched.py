"""What the pytest plugin watches of a control plane during one test."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kcm import errors
from kcm.testing.history.invariants import Invariant
from kcm.testing.history.looking import Looking
from kcm.testing.history.page import render
from kcm.testing.history.reports import build_report

_MOST_NAME = 120  # characters of a file's name


@dataclass(frozen=True)
class Watched:
    """A control plane that a test uses, from the resourceVersion `since` on.

    `namespace` is the test's own, None if all is the test's. `invariants` are those of others,
    which stay when the test ends.
    """

    control_plane: Looking
    namespace: str | None
    since: int
    invariants: Sequence[Invariant]

    @classmethod
    def begin(cls, control_plane: Looking) -> Watched:
        """Begins to watch all of a control plane."""
        recorder = control_plane.recorder
        return cls(control_plane, None, recorder.position(), recorder.invariants)

    def of_namespace(self, namespace: str) -> Watched:
        """Returns the same of one namespace only."""
        return replace(self, namespace=namespace)

    def check(self) -> None:
        """Checks what must never happen. Raises AssertionError."""
        __tracebackhide__ = True  # of pytest
        self.control_plane.check_invariants()

    def end(self) -> None:
        """Drops the invariants of the test."""
        recorder = self.control_plane.recorder
        for invariant in recorder.invariants:
            if invariant not in self.invariants:
                recorder.drop(invariant)

    def timeline(self) -> str:
        """Returns the timeline for a failed test, or why there is none."""
        try:
            return str(build_report(self.control_plane.recorder, self.namespace, self.since))
        except errors.KcmError as error:
            return f"there is no timeline: {error}"

    def write_page(self, folder: Path, test: str, outcome: str, failure: str) -> str:
        """Writes the page about a test, and returns a line that says where it is."""
        try:
            report = build_report(self.control_plane.recorder, self.namespace, self.since)
            path = folder / file_name(test)
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(render(report, test, outcome, failure), "utf-8")
        except (errors.KcmError, OSError) as error:
            return f"the page could not be written: {error}"
        return f"the same as a page: {path}"


def file_name(test: str) -> str:
    """Returns the name of a test's page, which no other test has."""
    words = re.sub(r"[^A-Za-z0-9_.-]+", "-", test).strip("-.")[-_MOST_NAME:].strip("-.")
    return f"{words}-{hashlib.sha256(test.encode()).hexdigest()[:8]}.html"
