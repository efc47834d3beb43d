"""The command `kcm nodes list`."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from kcm.cli.connect import open_store
from kcm.cli.nodes.registered import RegisteredNode, list_registered_nodes, simulator_runs
from kcm.cli.objects.table import TextTable
from kcm.kinds.printing.durations import human_duration


@click.command("list")
def list_nodes() -> None:
    """List simulated nodes: their last commands, and how the control plane sees them.

    \b
    What to look at:
      COMMAND   stopped or partitioned, and since when; - for neither
      RENEWED   how long ago the lease was renewed; after the grace period
                (50 s, with kcm up --demo 10 s) the node counts as unreachable
      READY     Unknown: the node is unreachable
    """
    with open_store() as store:
        nodes, runs = list_registered_nodes(store), simulator_runs(store)
    if not nodes:
        click.echo("No simulated nodes. kcm nodes --count 5 runs some, and kcm up does.", err=True)
        return
    now = datetime.now(UTC)
    table = TextTable(["NAME", "ZONE", "READY", "COMMAND", "RENEWED", "PODS", "TAINTS"])
    for line in table.lines(_row(node, now) for node in nodes):
        click.echo(line)
    if not runs:
        click.echo("No process simulates them now: kcm nodes, or kcm up.", err=True)


def _row(node: RegisteredNode, now: datetime) -> list[str]:
    command = "-"
    if node.command is not None and node.command.silent:
        since = f" {human_duration(now - node.command.since)}" if node.command.since else ""
        command = f"{node.command.state}{since}"
    renewed = f"{human_duration(now - node.renewed)} ago" if node.renewed else "never"
    taints = ",".join(f"{t.key}:{t.effect}" for t in node.node.spec.taints or ()) or "-"
    return [node.node.name, node.zone, node.ready, command, renewed, str(len(node.pods)), taints]
