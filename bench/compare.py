"""Compares an earlier commit with this working tree, on one machine, in turns."""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tabulate import tabulate

from bench.cases import select
from bench.harness import ROOT, progress
from bench.table import Sample

EPILOG = """\
BASE is whatever git calls a commit: a hash, a tag, main, HEAD~3. It is checked out under
a temporary folder and installed there into an environment of its own (about half a
minute); both are removed at the end, also after Ctrl-C. "new" is this working tree, with
changes that are not committed. The sides take turns, old new, new old, ..., so that a
slow hour of the machine affects both.

Both sides are measured by the bench/ of this working tree. Rows that use parts of kcm
which BASE does not have fail there: choose rows with --only (those of `rest` use HTTP
and need least), or use --own-bench, where rows of one name may measure different things.

How to read the table: medians of all rounds, with the smallest and largest. "new / old"
above 1 means more of the unit. "better" and "worse" mean that the rounds of the two
sides do not overlap; without either, these rounds show no difference.

examples:
  make bench-compare BASE=main
  make bench-compare BASE=HEAD~1 COMPARE_FLAGS="--only rest.writes --rounds 5"
  python -m bench.compare v0.1.0 --only store --only watch --json compared.json
  python -m bench.compare HEAD --quick     to see that it works: no claims
"""
DEFAULT_ROWS = ("rest.writes", "rest.workloads")
OLD, NEW = "old", "new"
PATIENCE = 30.0  # seconds for a measurement to stop what it has started

Report = Mapping[str, Any]  # one row of `python -m bench --json`


class CompareError(Exception):
    """A side could not be prepared or measured. The message names the side and the reason."""


@dataclass(frozen=True)
class Compared:
    """One row, measured on both sides. A side without the row is None."""

    name: str
    unit: str
    old: Sample | None
    new: Sample | None
    higher_is_better: bool = False

    @property
    def ratio(self) -> float | None:
        """The ratio of the medians, new to old; None if a side is missing or the old one is 0."""
        if self.old is None or self.new is None or not self.old.median:
            return None
        return self.new.median / self.old.median

    @property
    def verdict(self) -> str:
        """`better` or `worse` if the rounds of the two sides do not overlap, else "".

        If one side is missing, it is `only` and the other side.
        """
        if self.old is None or self.new is None:
            return f"only {OLD if self.new is None else NEW}"
        if len(self.old.values) < 2 or len(self.new.values) < 2:
            return ""
        if min(self.new.values) > max(self.old.values):
            return "better" if self.higher_is_better else "worse"
        if max(self.new.values) < min(self.old.values):
            return "worse" if self.higher_is_better else "better"
        return ""

    def cells(self) -> list[str]:
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        samples = ["" if sample is None else str(sample) for sample in (self.old, self.new)]
        return [self.name, self.unit, *samples, ratio, self.verdict]


def compare(old: Sequence[Sequence[Report]], new: Sequence[Sequence[Report]]) -> list[Compared]:
    """Returns the compared rows of all rounds, in the order of the new side's rows."""
    olds, news = _by_name(old), _by_name(new)
    compared = []
    for name in [*news, *(name for name in olds if name not in news)]:
        one = news.get(name) or olds[name]
        compared.append(
            Compared(
                name=name,
                unit=one[0]["unit"],
                old=_sample(olds.get(name)),
                new=_sample(news.get(name)),
                higher_is_better=one[0].get("higher_is_better", False),
            )
        )
    return compared


def _by_name(rounds: Sequence[Sequence[Report]]) -> dict[str, list[Report]]:
    rows: dict[str, list[Report]] = {}
    for row in (row for reports in rounds for row in reports):
        rows.setdefault(row["name"], []).append(row)
    return rows


def _sample(rows: Sequence[Report] | None) -> Sample | None:
    return Sample.of([row["measured"] for row in rows]) if rows else None


def turns(rounds: int) -> Iterator[str]:
    """Yields the sides in the order of their turns. They begin rounds alternately."""
    for number in range(rounds):
        yield from (OLD, NEW) if number % 2 == 0 else (NEW, OLD)


def render_comparison(rows: Sequence[Compared]) -> str:
    """Returns the table of a comparison as text."""
    headers = ("row", "unit", "old: median (min .. max)", "new", "new / old", "")
    cells = [row.cells() for row in rows]
    return tabulate(cells, headers, tablefmt="simple", disable_numparse=True)


# --- the two sides


@dataclass(frozen=True)
class Side:
    """One side of a comparison: a source tree, and the Python that has its dependencies."""

    name: str
    root: Path
    python: Path


@contextmanager
def checked_out(base: str, folder: Path, *, own_bench: bool) -> Iterator[Side]:
    """Checks a commit out under `folder` and installs it; removes both at the end.

    Unless `own_bench`, the bench/ of this working tree replaces that of the commit. Raises
    CompareError.
    """
    root, environment = folder / "base", folder / "venv"
    progress(f"compare: checking {base} out, and installing it into an environment of its own")
    _run("git", "worktree", "add", "--detach", str(root), base)
    try:
        if not own_bench:
            shutil.rmtree(root / "bench", ignore_errors=True)
            shutil.copytree(
                ROOT / "bench", root / "bench", ignore=shutil.ignore_patterns("__pycache__")
            )
        _run(sys.executable, "-m", "venv", str(environment))
        python = environment / "bin" / "python"
        quiet = ("--disable-pip-version-check", "--progress-bar", "off", "-q")
        _run(str(python), "-m", "pip", "install", *quiet, "-e", str(root))
        yield Side(OLD, root, python)
    finally:
        with contextlib.suppress(CompareError):
            _run("git", "worktree", "remove", "--force", str(root))


def _run(*command: str) -> None:
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise CompareError(f"{' '.join(command)} failed:\n{ended.stderr.strip()}")


def measure_side(side: Side, arguments: Sequence[str], folder: Path) -> list[Report]:
    """Runs the measurements of one side and returns its rows. Raises CompareError."""
    result = folder / "rows.json"
    result.unlink(missing_ok=True)
    command = [str(side.python), "-m", "bench", *arguments, "--json", str(result)]
    with (folder / f"{side.name}.log").open("w+") as log:
        process = subprocess.Popen(command, cwd=side.root, stdout=log, stderr=subprocess.STDOUT)
        try:
            process.wait()
        finally:
            if process.poll() is None:
                process.terminate()  # it stops what it has started
                process.wait(PATIENCE)
        if not result.exists():
            log.seek(0)
            hint = "; other rows (--only) or --own-bench may help" if side.name == OLD else ""
            output = log.read()[-3000:]
            raise CompareError(f"the {side.name} side could not be measured{hint}:\n{output}")
    rows: list[Report] = json.loads(result.read_text())["rows"]
    return rows


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="python -m bench.compare",
        description="Measure a commit and this working tree in turns, and compare the medians.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    found.add_argument("base", metavar="BASE", help="the commit to compare with")
    found.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="rows as in python -m bench --list; default: " + ", ".join(DEFAULT_ROWS),
    )
    found.add_argument(
        "--rounds", type=_positive, default=3, metavar="N", help="turns of each side; default: 3"
    )
    found.add_argument(
        "--own-bench", action="store_true", help="measure BASE with the bench/ that it has"
    )
    found.add_argument("--quick", action="store_true", help="smoke sizes: the numbers mean nothing")
    found.add_argument("--json", type=Path, metavar="FILE", help="write all rounds there, too")
    return found


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 after a comparison, 1 if a side failed, 2 for an unknown name."""
    options = parser().parse_args(arguments)
    try:
        select(options.only)
    except LookupError as error:
        progress(str(error.args[0]))
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # runs the clean-up
    try:
        rounds = _measure_in_turns(options)
    except CompareError as error:
        progress(str(error))
        return 1
    sys.stdout.write(render_comparison(compare(rounds[OLD], rounds[NEW])) + "\n")
    if options.json:
        options.json.write_text(json.dumps({"base": options.base, **rounds}, indent=2) + "\n")
    return 0


def _measure_in_turns(options: argparse.Namespace) -> dict[str, list[list[Report]]]:
    names = options.only or DEFAULT_ROWS
    flags = [part for name in names for part in ("--only", name)]
    flags += ["--quick"] if options.quick else []
    rounds: dict[str, list[list[Report]]] = {OLD: [], NEW: []}
    with tempfile.TemporaryDirectory(prefix="kcm-compare-") as name:
        folder = Path(name)
        with checked_out(options.base, folder, own_bench=options.own_bench) as base:
            sides = {OLD: base, NEW: Side(NEW, ROOT, Path(sys.executable))}
            for number, side in enumerate(turns(options.rounds)):
                progress(f"compare: turn {number + 1} of {2 * options.rounds}: {side}")
                rounds[side].append(measure_side(sides[side], flags, folder))
    return rounds


if __name__ == "__main__":
    sys.exit(main())
