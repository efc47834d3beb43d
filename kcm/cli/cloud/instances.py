"""The commands `kcm cloud shutdown`, `start`, `delete` and `set`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import click

from kcm import errors
from kcm.cli.cloud.showing import simulated_nodes
from kcm.cli.connect import open_store
from kcm.reconcile.cloudprovider.sim.records import Instance, InstanceState
from kcm.reconcile.cloudprovider.sim.state import SimState
from kcm.simulation import commands
from kcm.simulation.commands import NodeCommand
from kcm.store import Store


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NODE...")
def shutdown(names: tuple[str, ...]) -> None:
    """Shut down instances: their kubelets stop, and their disks are kept.

    When a node has become unreachable (after 50 s, with kcm up --demo 10 s), it
    gets the taint node.cloudprovider.kubernetes.io/shutdown.

    \b
    Example:
      kcm cloud shutdown node-2
      kubectl get node node-2 -o yaml
      kcm cloud start node-2
    """
    with open_store() as store:
        _change(store, names, "shutdown")
        commands.send(store, {name: NodeCommand("stopped", _now()) for name in names})
    click.echo(f"Shut down: {', '.join(names)}. Undo: kcm cloud start {' '.join(names)}")


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NODE...")
def delete(names: tuple[str, ...]) -> None:
    """Delete instances: when a node has become unreachable, it is deleted, too.

    \b
    Example:
      kcm cloud delete node-3
      kubectl get nodes -w
    """
    with open_store() as store:
        _change(store, names, "deleted")
        commands.send(store, {name: NodeCommand("stopped", _now()) for name in names})
    click.echo(f"Deleted: {', '.join(names)}. A new one: kcm cloud start {' '.join(names)}")


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NODE...")
def start(names: tuple[str, ...]) -> None:
    """Start instances that are shut down, and make those anew that were deleted."""
    with open_store() as store:
        _change(store, names, "running")
        commands.send(store, {name: NodeCommand("started", _now()) for name in names})
    click.echo(f"Running: {', '.join(names)}")


@click.command("set")
@click.argument("name", metavar="NODE")
@click.option("--type", "kind", default="", help="The instance type, such as sim.large.")
@click.option("--zone", default="", help="The zone.")
@click.option("--region", default="", help="The region.")
def set_instance(name: str, kind: str, zone: str, region: str) -> None:
    """Set what the cloud says about an instance.

    A node gets it as labels when it registers: delete the node and start its
    kubelet again to see it.

    \b
    Example:
      kcm cloud set node-1 --type sim.large
      kubectl delete node node-1
      kcm nodes start node-1
      kubectl get nodes -L node.kubernetes.io/instance-type
    """
    given = {"type": kind, "zone": zone, "region": region}
    changes = {field: value for field, value in given.items() if value}
    if not changes:
        raise click.UsageError("set at least one of --type, --zone and --region")
    with open_store() as store:
        state = SimState(store.io)
        _require_known(store, state, [name])
        state.put_instance(name, state.instance(name).model_copy(update=changes))
    click.echo(f"{name}: {', '.join(f'{field} {value}' for field, value in changes.items())}")


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _change(store: Store, names: Iterable[str], wanted: InstanceState) -> None:
    state, names = SimState(store.io), list(names)
    _require_known(store, state, names)
    for name in names:
        before: Instance = state.instance(name)
        state.put_instance(name, before.model_copy(update={"state": wanted}))


def _require_known(store: Store, state: SimState, names: Iterable[str]) -> None:
    existing = {*simulated_nodes(store), *state.instances()}
    for name in names:
        if name not in existing:
            raise errors.NotFound(
                f'the cloud has no instance "{name}"; kcm cloud instances lists them', name=name
            )
