"""The commands `kcm nodes storage`, which script the simulated CSI driver."""

from __future__ import annotations

import click

from kcm.cli.call_scripts import call_argument, limits, print_scripts
from kcm.cli.connect import open_store
from kcm.cli.durations import parse_duration
from kcm.reconcile.cloudprovider.sim.records import Script
from kcm.simulation.context import storage_scripts
from kcm.simulation.storage.calls import VERBS

_HANGS = 3600.0  # seconds, the most that a script has
_UNDO = "kcm nodes storage heal"
_call = call_argument(VERBS)
_limits = limits("volume, node or claim (default/data)", _UNDO)


@click.group()
def storage() -> None:
    """Script the simulated CSI driver, whose volumes simulated nodes attach.

    Claims of the StorageClass `simulated` get its volumes. It creates, attaches,
    detaches and deletes them, which takes 300ms each (kcm nodes --storage-delay).

    \b
    Examples:
      kcm nodes storage slow attach 20s --times 1
      kcm nodes storage fail attach "disk is broken" --for node-2
      kcm nodes storage hang detach --for default/data-web-0
      kcm nodes storage heal
    """


@storage.command()
@_call
@click.argument("delay", callback=parse_duration)
@_limits
def slow(call: str, delay: float, about: str, times: int | None) -> None:
    """Make a CALL take DELAY, such as 20s. CALL is `any` for all.

    A call that takes more than 15s is reported as failed, and is asked for again
    while the driver goes on with it.

    \b
    Example:
      kcm nodes storage slow create 5s --for default/data-web-0
    """
    _add(Script(call=call, object=about, delay=delay), times)


@storage.command()
@_call
@_limits
def hang(call: str, about: str, times: int | None) -> None:
    """Make a CALL never end, until kcm nodes storage heal. CALL is `any` for all.

    \b
    Example:
      kcm nodes storage hang attach --for node-1
    """
    _add(Script(call=call, object=about, delay=_HANGS), times)


@storage.command()
@_call
@click.argument("message")
@click.option("--after", callback=parse_duration, default="0s", show_default=True,
              help="How long the call takes until it fails.")  # fmt: skip
@_limits
def fail(call: str, message: str, after: float, about: str, times: int | None) -> None:
    """Make a CALL fail with MESSAGE. CALL is `any` for all.

    It is made again after 1s, then after 2s, 4s and so on, at most 5m.

    \b
    Example:
      kcm nodes storage fail attach "disk is broken" --times 3
    """
    _add(Script(call=call, object=about, delay=after, error=message), times)


def _add(script: Script, times: int | None) -> None:
    with open_store() as store:
        storage_scripts(store).add(script, times)
    click.echo(f"Undo: {_UNDO}")


@storage.command("scripts")
def list_scripts() -> None:
    """List which calls are slow or fail. The first that applies counts."""
    with open_store() as store:
        print_scripts(storage_scripts(store).list().values())


@storage.command()
def heal() -> None:
    """Remove all scripts: no call is slow or fails any more.

    Calls that hang are made again within 15s, or when their time has come.
    """
    with open_store() as store:
        storage_scripts(store).clear()
    click.echo("No call is slow or fails any more.")
