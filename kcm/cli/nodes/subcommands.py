"""The commands `kcm nodes stop`, `start`, `partition` and `heal`, sent to a running simulator."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from kcm import errors
from kcm.cli.connect import open_store
from kcm.cli.nodes.forecast import forecast
from kcm.cli.nodes.registered import (
    RegisteredNode,
    grace_period,
    list_registered_nodes,
    simulator_runs,
)
from kcm.simulation import commands
from kcm.simulation.commands import NodeCommand
from kcm.store import Store


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NODE...")
def stop(names: tuple[str, ...]) -> None:
    """Stop kubelets: the nodes neither renew their leases nor report.

    Their pods stay as they are, as on a machine that lost power. The command
    prints what the control plane will do, and when.

    \b
    Example:
      kcm nodes stop node-2
      kubectl get nodes -w
      kcm nodes start node-2
    """
    with open_store() as store:
        chosen = _select_by_name(list_registered_nodes(store), names)
        _stop_or_partition(store, chosen, "stopped")
        click.echo(f"Undo: kcm nodes start {' '.join(names)}")


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NODE...")
def start(names: tuple[str, ...]) -> None:
    """Start kubelets, also those that are already running.

    A node whose object was deleted registers again only at its start: a
    running kubelet does not do so.

    \b
    Example:
      kubectl delete node node-2
      kcm nodes start node-2
    """
    now = datetime.now(UTC).replace(microsecond=0)
    with open_store() as store:
        registered = {node.node.name for node in list_registered_nodes(store)}
        commands.send(store, {name: NodeCommand("started", now) for name in names})
        for name in names:
            what = "reports" if name in registered else "registers, if it is the simulator's,"
            click.echo(f"{name} starts: it {what} within a second")
        click.echo("The control plane removes its taints when the node is ready.")
        _warn_without_simulator(store)


@click.command()
@click.option("--zone", "zones", multiple=True, help="All nodes of a zone. May be repeated.")
@click.argument("names", nargs=-1, metavar="[NODE...]")
def partition(zones: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Cut nodes off from the network: their kubelets run, but reach nothing.

    When they come back (kcm nodes heal), they catch up: pods that were
    deleted meanwhile are stopped then.

    \b
    Examples:
      kcm nodes partition --zone a
      kcm nodes partition node-1 node-2
    """
    if not zones and not names:
        raise click.UsageError("name nodes, or a zone with --zone")
    with open_store() as store:
        nodes = list_registered_nodes(store)
        chosen = _select_by_name(nodes, names) + _in_zones(nodes, zones)
        _stop_or_partition(store, chosen, "partitioned")
        click.echo("Undo: kcm nodes heal")


@click.command()
@click.option("--zone", "zones", multiple=True, help="Only nodes of a zone. May be repeated.")
@click.argument("names", nargs=-1, metavar="[NODE...]")
def heal(zones: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Bring back nodes that were cut off: all of them, or those that are named.

    \b
    Examples:
      kcm nodes heal
      kcm nodes heal --zone a
    """
    with open_store() as store:
        sent = commands.parse(commands.get_stored(store))
        cut_off = {name for name, command in sent.items() if command.state == "partitioned"}
        if names or zones:
            nodes = list_registered_nodes(store)
            chosen = _select_by_name(nodes, names) + _in_zones(nodes, zones)
            cut_off &= {node.node.name for node in chosen}
        if not cut_off:
            click.echo("No such node is cut off.")
            return
        commands.send(store, dict.fromkeys(cut_off))
        for name in sorted(cut_off):
            click.echo(f"{name} is back: it renews its lease and reports within a second")
        _warn_without_simulator(store)


def _stop_or_partition(
    store: Store, chosen: Sequence[RegisteredNode], state: commands.State
) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    commands.send(store, {node.node.name: NodeCommand(state, now) for node in chosen})
    for line in forecast(store, chosen, state, grace_period(store)):
        click.echo(line)
    _warn_without_simulator(store)


def _warn_without_simulator(store: Store) -> None:
    if not simulator_runs(store):
        click.echo(
            "No process simulates nodes now; the command takes effect at its next start.", err=True
        )


def _select_by_name(nodes: Sequence[RegisteredNode], names: Sequence[str]) -> list[RegisteredNode]:
    by_name = {node.node.name: node for node in nodes}
    for name in names:
        if name not in by_name:
            raise errors.NotFound(
                f'no simulated node "{name}" is registered; kcm nodes list shows those that are',
                name=name,
            )
    return [by_name[name] for name in names]


def _in_zones(nodes: Sequence[RegisteredNode], zones: Sequence[str]) -> list[RegisteredNode]:
    for zone in zones:
        if not any(node.zone == zone for node in nodes):
            there = ", ".join(sorted({node.zone for node in nodes})) or "none"
            raise errors.NotFound(
                f'no simulated node is in zone "{zone}"; there are: {there}', name=zone
            )
    return [node for node in nodes if node.zone in zones]
