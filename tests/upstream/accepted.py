"""The list of differences between kcm and upstream's cases that are accepted, each with a reason.

`accepted.yaml` has a list for each group: a reason, and the numbers of the cases that it explains.
The list can only shrink: a case that is in it and agrees is a failure, as is one that differs and
is not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml

Differences = dict[str, dict[int, str]]  # by group, by case: what differs
Compare = Callable[[], Differences]

_FILE = Path(__file__).with_name("accepted.yaml")


def read() -> dict[str, list[dict[str, str]]]:
    """Returns the list: by group, the reasons and the cases that each explains."""
    lists: dict[str, list[dict[str, str]]] = yaml.safe_load(_FILE.read_text())
    return lists


def check(differences: Differences) -> None:
    """Raises AssertionError if the differences of these groups are not those that are accepted."""
    faults = [fault for group, cases in differences.items() for fault in _faults(group, cases)]
    assert not faults, "\n".join(faults)


def shrink(differences: Differences) -> int:
    """Removes the cases that agree from the list. Returns how many they were."""
    lists = read()
    before = sum(len(cases) for group in differences for cases in _cases(lists, group))
    for group, differing in differences.items():
        entries = [
            {**entry, "cases": format_cases(parse_cases(entry["cases"]) & differing.keys())}
            for entry in lists.get(group, ())
        ]
        lists[group] = [entry for entry in entries if entry["cases"]]
    lists = {group: entries for group, entries in lists.items() if entries}
    _FILE.write_text(yaml.safe_dump(lists, sort_keys=False, width=100, allow_unicode=True))
    return before - sum(len(cases) for group in differences for cases in _cases(lists, group))


def unexplained(group: str, differing: dict[int, str]) -> dict[int, str]:
    """Returns the differences that no reason in the list explains."""
    accepted = _accepted(group)
    return {case: text for case, text in differing.items() if case not in accepted}


def parse_cases(text: str) -> set[int]:
    """Returns the numbers that a text such as "3 7-9" lists."""
    numbers: set[int] = set()
    for part in str(text).split():
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def format_cases(numbers: Iterable[int]) -> str:
    """Returns the text that `parse_cases` parses, with a range for neighbours."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _faults(group: str, differing: dict[int, str]) -> Iterable[str]:
    for case, text in unexplained(group, differing).items():
        yield f"{group}: case {case} differs: {text}"
    if agreeing := _accepted(group) - differing.keys():
        yield (
            f"{group}: cases {format_cases(agreeing)} agree and are listed as accepted differences;"
            " `python -m tests.upstream --shrink` removes them"
        )


def _accepted(group: str) -> set[int]:
    return set().union(*_cases(read(), group))


def _cases(lists: dict[str, Any], group: str) -> list[set[int]]:
    return [parse_cases(entry["cases"]) for entry in lists.get(group, ())]
