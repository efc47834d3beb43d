"""Writes docs/conformance.md: every spec, and how it ended in each column."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tools.conformance.results import COLUMNS, UNCOUNTED, Results
from tools.conformance.suite import PASSED

_REASONS = Path(__file__).with_name("reasons.txt")
_SIG = re.compile(r"^\[(sig-[a-z-]+)\] ")
_TAGS = re.compile(r" \[(?:Conformance|NodeConformance|LinuxOnly|Privileged:ClusterAdmin)\]")
_INTRODUCTION = Path(__file__).with_name("introduction.md")


@cache
def _reasons() -> list[tuple[str, re.Pattern[str], str]]:
    """Returns the lines of reasons.txt: column, pattern of names, reason."""
    lines = [line for line in _REASONS.read_text().splitlines() if line and line[0] != "#"]
    parts = (line.split(" | ") for line in lines)
    return [(column, re.compile(pattern), why) for column, pattern, why in parts]


def find_reason(column: str, spec: str) -> str:
    """Returns why a spec cannot run in a column, "" if it should."""
    return next(
        (why for name, pattern, why in _reasons() if name == column and pattern.search(spec)), ""
    )


def describe(column: str, spec: str, results: Results | None) -> str:
    """Returns the word for the table: passed, failed, or why the spec cannot run."""
    result = results.specs.get(spec) if results is not None else None
    if result is None:
        return "not run"
    if result == PASSED:
        return "passed"
    reason = find_reason(column, spec)
    return f"cannot run: {reason}" if reason else "**failed**"


def render(columns: Mapping[str, Results | None]) -> str:
    """Returns the page."""
    lines = [_INTRODUCTION.read_text().rstrip(), ""]
    lines += _render_sums(columns)
    specs = sorted({spec for one in columns.values() if one is not None for spec in one.specs})
    for sig in dict.fromkeys(_sig_of(spec) for spec in specs):
        lines += ["", f"## {sig}", "", *_render_table(columns, specs, sig)]
    return "\n".join(lines) + "\n"


def _render_sums(columns: Mapping[str, Results | None]) -> Iterator[str]:
    yield "| | passed | failed | cannot run | of | commit | suite |"
    yield "|---|---|---|---|---|---|---|"
    for column, words in COLUMNS.items():
        results = columns.get(column)
        if column == UNCOUNTED:
            continue
        if results is None:
            yield f"| {words} | not run yet | | | | | |"
            continue
        passed, failed, rest = _count(column, results)
        yield (
            f"| {words} | {passed} | {failed} | {rest} | {len(results.specs)} "
            f"| `{results.commit[:10]}` | {results.suite} |"
        )
    if (results := columns.get(UNCOUNTED)) is not None:
        yield ""
        yield _describe_uncounted(results, columns.get("simulated"))


def _count(column: str, results: Results) -> tuple[int, int, int]:
    """Returns how many specs have passed, have failed, and cannot run."""
    shown = [describe(column, spec, results) for spec in results.specs]
    passed, failed = shown.count("passed"), shown.count("**failed**")
    return passed, failed, len(shown) - passed - failed


def _describe_uncounted(results: Results, simulated: Results | None) -> str:
    """Returns the sentence about the column that is in no sum."""
    passed, failed, rest = _count(UNCOUNTED, results)
    before = simulated.specs if simulated is not None else {}
    more = sum(
        result == PASSED and before.get(spec) != PASSED for spec, result in results.specs.items()
    )
    return (
        f"Not in these sums, since its containers are scripted: {COLUMNS[UNCOUNTED]}. Of "
        f"{len(results.specs)} specs that were run there on commit `{results.commit[:10]}`, "
        f"{passed} passed, of which {more} cannot run without scripts; {failed} failed, and "
        f"{rest} cannot run."
    )


def _render_table(
    columns: Mapping[str, Results | None], specs: list[str], sig: str
) -> Iterator[str]:
    present = [column for column in COLUMNS if columns.get(column) is not None]
    yield f"| spec | {' | '.join(COLUMNS[column] for column in present)} |"
    yield "|---|" + "---|" * len(present)
    for spec in specs:
        if _sig_of(spec) == sig:
            words = (describe(column, spec, columns[column]) for column in present)
            name = _TAGS.sub("", _SIG.sub("", spec)).replace("|", r"\|").replace("<", "&lt;")
            yield f"| {name} | {' | '.join(words)} |"


def _sig_of(spec: str) -> str:
    sig = _SIG.match(spec)
    return sig[1] if sig else "others"
