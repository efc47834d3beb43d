"""Prints where kcm differs from upstream's cases and no reason is listed.

    python -m tests.upstream [--all] [--shrink] [WORD ...]

The words choose groups. `--all` prints what is accepted, too; `--shrink` removes from
`accepted.yaml` what agrees.
"""

from __future__ import annotations

import sys

from tests.upstream import accepted
from tests.upstream.comparisons import COMPARISONS


def main(arguments: list[str]) -> None:
    """Prints the differences of the groups that the arguments choose."""
    words = [word for word in arguments if not word.startswith("--")]
    for compare in COMPARISONS:
        if words and not any(word in compare.__name__ for word in words):
            continue
        differences = compare()
        if "--shrink" in arguments and (removed := accepted.shrink(differences)):
            print(f"{removed} cases agree and are no longer listed")  # noqa: T201 # its output
        for group, cases in differences.items():
            shown = cases if "--all" in arguments else accepted.unexplained(group, cases)
            for number, text in shown.items():
                print(f"{group}: {number}: {text}")  # noqa: T201 # its output
            print(f"== {group}: {len(cases)} differ, {len(shown)} shown")  # noqa: T201 # its output


if __name__ == "__main__":
    main(sys.argv[1:])
