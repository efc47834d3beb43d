"""The commands `kcm cloud slow`, `fail`, `scripts` and `heal`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from kcm.apimachinery.durations import format_seconds
from kcm.cli.connect import open_redis
from kcm.cli.durations import parse_duration
from kcm.cli.objects.table import TextTable
from kcm.cloudprovider.sim.provider import CALLS
from kcm.cloudprovider.sim.records import Script
from kcm.cloudprovider.sim.state import SimState

_ANY = "any"
_CALL = click.Choice([*CALLS, _ANY], case_sensitive=False)
_Command = Callable[..., Any]


def _limits(command: _Command) -> _Command:
    """Adds the options that say to which calls a script applies."""
    about = click.option("--for", "about", default="", metavar="OBJECT",
                         help="Only calls about this Service (default/web) or node.")  # fmt: skip
    times = click.option("--times", type=click.IntRange(1), default=None,
                         help="Only so many calls, instead of all until kcm cloud heal.",
                         )  # fmt: skip
    return about(times(command))


@click.command()
@click.argument("call", type=_CALL)
@click.argument("delay", callback=parse_duration)
@_limits
def slow(call: str, delay: float, about: str, times: int | None) -> None:
    """Make a CALL take DELAY, such as 20s. CALL is `any` for all.

    \b
    Examples:
      kcm cloud slow EnsureLoadBalancer 20s --for default/web
      kcm cloud slow any 500ms
    """
    _add(Script(call=_name(call), object=about, delay=delay), times)


@click.command()
@click.argument("call", type=_CALL)
@click.argument("message")
@click.option("--after", callback=parse_duration, default="0s", show_default=True,
              help="How long the call takes until it fails.")  # fmt: skip
@_limits
def fail(call: str, message: str, after: float, about: str, times: int | None) -> None:
    """Make a CALL fail with MESSAGE. CALL is `any` for all.

    \b
    Examples:
      kcm cloud fail EnsureLoadBalancer "quota exceeded" --times 3
      kcm cloud fail InstanceExists "timed out" --after 10s --for node-2
    """
    _add(Script(call=_name(call), object=about, delay=after, error=message), times)


def _name(call: str) -> str:
    return "" if call == _ANY else call


def _add(script: Script, times: int | None) -> None:
    with open_redis() as io:
        SimState(io).add_script(script, times)
    click.echo("Undo: kcm cloud heal")


@click.command("scripts")
def list_scripts() -> None:
    """List which calls are slow or fail. The first that applies counts."""
    with open_redis() as io:
        scripts = SimState(io).scripts()
    if not scripts:
        click.echo("No call is slow or fails.", err=True)
        return
    rows = [
        [
            script.call or _ANY,
            script.object or "-",
            format_seconds(script.delay),
            script.error or "-",
            "-" if left is None else str(left),
        ]
        for script, left in scripts.values()
    ]
    for line in TextTable(["CALL", "FOR", "TAKES", "ERROR", "LEFT"]).lines(rows):
        click.echo(line)


@click.command()
def heal() -> None:
    """Remove all scripts: no call is slow or fails any more."""
    with open_redis() as io:
        SimState(io).clear_scripts()
    click.echo("No call is slow or fails any more. Failed ones are repeated within 5 minutes.")
