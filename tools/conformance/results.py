"""The outcomes of runs, as they are kept beside this module: a file for each column of the page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.conformance.suite import Outcome

FOLDER = Path(__file__).with_name("results")
COLUMNS: Mapping[str, str] = {
    "simulated": "simulated nodes",
    "scripted": "simulated nodes with scripted containers",
    "containers": "kcm's kubelet and containerd",
    "kubelet": "upstream's kubelet and containerd",
}
UNCOUNTED = "scripted"  # the column that is for testers, and in no sum


@dataclass(frozen=True)
class Results:
    """What one column of the page says. `specs` are results by the names of the specs."""

    commit: str
    suite: str  # version of the suite
    specs: Mapping[str, str] = field(default_factory=dict)


def read(column: str) -> Results | None:
    """Returns the results of a column, None if it has never been run."""
    file = FOLDER / f"{column}.json"
    return Results(**json.loads(file.read_text())) if file.exists() else None


def write(column: str, commit: str, suite: str, outcomes: Iterable[Outcome]) -> None:
    """Writes the results of a column. Specs that were not run keep what they had."""
    before = read(column)
    specs = dict(before.specs) if before is not None else {}
    specs |= {outcome.spec: outcome.result for outcome in outcomes}
    FOLDER.mkdir(exist_ok=True)
    kept = {"commit": commit, "suite": suite, "specs": dict(sorted(specs.items()))}
    (FOLDER / f"{column}.json").write_text(json.dumps(kept, indent=1) + "\n")
