"""`kcm nodes list`."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from kcm.cli.connect import open_store
from kcm.cli.nodes.look import Seen, seen, simulator_runs
from kcm.cli.objects.table import TextTable
from kcm.printing.durations import human_duration


@click.command("list")
def list_nodes() -> None:
    """List simulated nodes: what they were told, and how the control plane sees them.

    \b
    What to look at:
      TOLD      stopped or partitioned since when; - for as usual
      RENEWED   how long ago the lease was renewed; beyond the grace period
                (50 s, with kcm up --demo 10 s) the node is taken for dead
      READY     Unknown: the control plane has taken it for dead
    """
    with open_store() as store:
        found, runs = seen(store), simulator_runs(store)
    if not found:
        click.echo("No simulated nodes. kcm nodes --count 5 runs some, and kcm up does.", err=True)
        return
    now = datetime.now(UTC)
    table = TextTable(["NAME", "ZONE", "READY", "TOLD", "RENEWED", "PODS", "TAINTS"])
    for line in table.lines(_row(one, now) for one in found):
        click.echo(line)
    if not runs:
        click.echo("No process simulates them now: kcm nodes, or kcm up.", err=True)


def _row(one: Seen, now: datetime) -> list[str]:
    told = "-"
    if one.order is not None and one.order.silent:
        since = f" {human_duration(now - one.order.since)}" if one.order.since else ""
        told = f"{one.order.state}{since}"
    renewed = f"{human_duration(now - one.renewed)} ago" if one.renewed else "never"
    taints = ",".join(f"{t.key}:{t.effect}" for t in one.node.spec.taints or ()) or "-"
    return [one.node.name, one.zone, one.ready, told, renewed, str(len(one.pods)), taints]
