"""The commands `kcm cloud slow`, `fail`, `scripts` and `heal`."""

from __future__ import annotations

import click

from kcm.cli.call_scripts import call_argument, limits, print_scripts
from kcm.cli.connect import open_redis
from kcm.cli.durations import parse_duration
from kcm.reconcile.cloudprovider.sim.provider import CALLS
from kcm.reconcile.cloudprovider.sim.records import Script
from kcm.reconcile.cloudprovider.sim.state import SimState

_UNDO = "kcm cloud heal"
_call = call_argument(CALLS)
_limits = limits("Service (default/web) or node", _UNDO)


@click.command()
@_call
@click.argument("delay", callback=parse_duration)
@_limits
def slow(call: str, delay: float, about: str, times: int | None) -> None:
    """Make a CALL take DELAY, such as 20s. CALL is `any` for all.

    \b
    Examples:
      kcm cloud slow EnsureLoadBalancer 20s --for default/web
      kcm cloud slow any 500ms
    """
    _add(Script(call=call, object=about, delay=delay), times)


@click.command()
@_call
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
    _add(Script(call=call, object=about, delay=after, error=message), times)


def _add(script: Script, times: int | None) -> None:
    with open_redis() as io:
        SimState(io).add_script(script, times)
    click.echo(f"Undo: {_UNDO}")


@click.command("scripts")
def list_scripts() -> None:
    """List which calls are slow or fail. The first that applies counts."""
    with open_redis() as io:
        print_scripts(SimState(io).scripts().values())


@click.command()
def heal() -> None:
    """Remove all scripts: no call is slow or fails any more."""
    with open_redis() as io:
        SimState(io).clear_scripts()
    click.echo("No call is slow or fails any more. Failed ones are repeated within 5 minutes.")
