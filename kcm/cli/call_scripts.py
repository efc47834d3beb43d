"""What the commands share that script calls: `kcm cloud` and `kcm nodes storage`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from kcm.apimachinery.durations import format_seconds
from kcm.cli.objects.table import TextTable
from kcm.reconcile.cloudprovider.sim.records import Script

_ANY = "any"
_Command = Callable[..., Any]


def call_argument(calls: Sequence[str]) -> Callable[[_Command], _Command]:
    """Adds the argument for a call: one of `calls`, or `any`, of which the command gets ""."""
    choice = click.Choice([*calls, _ANY], case_sensitive=False)

    def name(_: click.Context, __: click.Parameter, call: str) -> str:
        return "" if call == _ANY else call

    return click.argument("call", type=choice, callback=name)


def limits(objects: str, undo: str) -> Callable[[_Command], _Command]:
    """Adds the options that say to which calls a script applies.

    `objects` says what calls are about, `undo` is the command that removes scripts.
    """
    about = click.option("--for", "about", default="", metavar="OBJECT",
                         help=f"Only calls about this {objects}.")  # fmt: skip
    times = click.option("--times", type=click.IntRange(1), default=None,
                         help=f"Only so many calls, instead of all until {undo}.")  # fmt: skip
    return lambda command: about(times(command))


def print_scripts(scripts: Iterable[tuple[Script, int | None]]) -> None:
    """Prints the scripts, each with the number of calls that are left, None for all."""
    rows = [
        [
            script.call or _ANY,
            script.object or "-",
            format_seconds(script.delay),
            script.error or "-",
            "-" if left is None else str(left),
        ]
        for script, left in scripts
    ]
    if not rows:
        click.echo("No call is slow or fails.", err=True)
        return
    for line in TextTable(["CALL", "FOR", "TAKES", "ERROR", "LEFT"]).lines(rows):
        click.echo(line)
