"""Runs the measurements that the command line names, and prints a table of the results."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.cases import CASES, Case, select
from bench.harness import QUICK, Bench, Sizes, progress
from bench.table import Row, render
from kcm.interpreter import tune

EPILOG = """\
Every row compares kcm with a raw baseline that the same run measured on the same
server: pipelined scripts that only store the same bytes, or Celery tasks that do
nothing. Compare the ratios: the milliseconds depend on this machine.
"measured" is the median of all rounds, with the smallest and largest.

A private server and real workers, managers and beats are started in a temporary
folder and stopped afterwards; a running kcm is not affected. A full run takes some
minutes; close other programs first.

examples:
  python -m bench                          everything
  python -m bench --only store --only watch
  python -m bench --only queue.threads     one pool
  python -m bench --quick                  seconds, to see that it works: no claims
  python -m bench --json result.json       also as data
"""


def build_parser() -> argparse.ArgumentParser:
    new = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure kcm as ratios to raw Redis and raw Celery.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    new.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="only this (see --list)"
    )
    new.add_argument(
        "--quick", action="store_true", help="smoke sizes, one pool: the numbers mean nothing"
    )
    new.add_argument("--json", type=Path, metavar="FILE", help="write the rows there, too")
    new.add_argument("--list", action="store_true", help="show what can be measured, and exit")
    return new


def measure(cases: Sequence[Case], sizes: Sizes) -> Iterator[Row]:
    """Runs the cases and yields their rows. Each case has a Redis server of its own."""
    for case in cases:
        with Bench(sizes) as bench:
            yield from case.run(bench)


def report(rows: Sequence[Row], quick: bool) -> dict[str, Any]:
    """Returns the data that `--json` writes."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, {platform.system()}",
        "python": platform.python_version(),
        "quick": quick,
        "rows": [row.as_dict() for row in rows],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 if every row passed (or with --quick), 1 if one missed.

    Returns 2 for an unknown name.
    """
    options = build_parser().parse_args(arguments)
    if options.list:
        _print("\n".join(f"{case.name:16} {case.about}" for case in CASES))
        return 0
    try:
        cases = select(options.only, quick=options.quick)
    except LookupError as error:
        progress(str(error.args[0]))
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # stops what was started
    tune()  # as the workers do
    rows = list(measure(cases, QUICK if options.quick else Sizes()))
    _print(render(rows))
    if options.json:
        options.json.write_text(json.dumps(report(rows, options.quick), indent=2) + "\n")
    return 0 if options.quick or all(row.passed for row in rows) else 1


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
