"""The commands `kcm cloud instances`, `balancers`, `routes`, `calls` and `pool`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import click

from kcm.api.core_v1 import Node
from kcm.api.simulated import SIMULATOR_LABEL
from kcm.apimachinery.labels import Selector
from kcm.cli.connect import open_redis, open_store
from kcm.cli.objects.table import TextTable
from kcm.helpers.node_reports import ready_status
from kcm.kinds.printing.durations import human_duration
from kcm.reconcile.cloudprovider.sim.provider import (
    DEFAULT_TYPE,
    REGION_LABEL,
    SCHEME,
    ZONE_LABEL,
    is_simulated,
)
from kcm.reconcile.cloudprovider.sim.records import Instance
from kcm.reconcile.cloudprovider.sim.state import SimState
from kcm.store import Store

_NODES = Node.resource


def simulated_nodes(store: Store) -> dict[str, Node]:
    """Returns the nodes that have instances in the cloud, by name."""
    page = store.list(_NODES, label_selector=Selector.parse(SIMULATOR_LABEL))
    nodes = (node for node in page.items if is_simulated(node))
    return {node.name: node for node in sorted(nodes, key=lambda n: (len(n.name), n.name))}


@click.command("instances")
def list_instances() -> None:
    """List instances, and how their nodes are.

    \b
    What to look at:
      STATE   running, shutdown or deleted: what the cloud says
      NODE    the Ready condition of the node; - if there is no such node.
              Only instances whose node is not ready are asked about.
    """
    with open_store() as store:
        nodes, records = simulated_nodes(store), SimState(store.io).instances()
    names = list(dict.fromkeys([*nodes, *records]))
    rows = [_instance_row(name, records.get(name, Instance()), nodes.get(name)) for name in names]
    _print(["NAME", "STATE", "TYPE", "ZONE", "REGION", "NODE", "PROVIDER-ID"], rows,
           "No instances. kcm nodes --count 5 simulates nodes, and kcm up does.")  # fmt: skip


def _instance_row(name: str, instance: Instance, node: Node | None) -> list[str]:
    labels = node.labels if node is not None else {}
    return [
        name,
        instance.state,
        instance.type or DEFAULT_TYPE,
        instance.zone or labels.get(ZONE_LABEL, "-"),
        instance.region or labels.get(REGION_LABEL, "-"),
        ready_status(node) if node is not None else "-",
        f"{SCHEME}{name}",
    ]


@click.command("balancers")
def list_balancers() -> None:
    """List load balancers: their Services, addresses, ports and nodes."""
    with open_redis() as io:
        balancers = SimState(io).balancers().values()
    rows = [
        [one.service, one.ip, ",".join(one.ports) or "-", _shorten(one.nodes), one.name]
        for one in sorted(balancers, key=lambda one: one.service)
    ]
    _print(["SERVICE", "ADDRESS", "PORTS", "NODES", "NAME"], rows,
           "No load balancers. A Service of type LoadBalancer gets one.")  # fmt: skip


def _shorten(names: Sequence[str], most: int = 5) -> str:
    more = [f"and {len(names) - most} more"] if len(names) > most else []
    return ",".join([*names[:most], *more]) or "-"


@click.command("routes")
def list_routes() -> None:
    """List routes to the pods of nodes.

    They are made with --allocate-node-cidrs and --cluster-cidr, as in
    kcm up -- --allocate-node-cidrs --cluster-cidr=10.32.0.0/12
    """
    with open_redis() as io:
        routes = SimState(io).routes().values()
    rows = [[route.cidr, route.node, route.cluster, route.name] for route in routes]
    _print(["DESTINATION", "NODE", "CLUSTER", "NAME"], rows, "No routes.")


@click.command("calls")
@click.option("-n", "--number", type=click.IntRange(1, 500), default=20, show_default=True,
              help="How many of the latest calls.")  # fmt: skip
def list_calls(number: int) -> None:
    """List the latest calls, the newest last: when, about what, how long, errors."""
    now = datetime.now(UTC)
    with open_redis() as io:
        calls = SimState(io).calls(number)
    rows = [
        [
            f"{human_duration(now - made.at)} ago",
            made.call,
            made.object or "-",
            f"{made.seconds:.3f}s",
            made.error or "-",
        ]
        for made in calls
    ]
    _print(["WHEN", "CALL", "OBJECT", "TOOK", "ERROR"], rows, "No calls yet.")


@click.command("pool")
@click.argument("network", required=False)
def pool(network: str | None) -> None:
    """Show the addresses for load balancers, or set them to NETWORK.

    Load balancers keep the addresses that they have.

    \b
    Example:
      kcm cloud pool 192.0.2.0/28
    """
    with open_redis() as io:
        state = SimState(io)
        if network is not None:
            state.set_pool(network)
        click.echo(state.pool())


def _print(titles: list[str], rows: Iterable[Sequence[str]], if_none: str) -> None:
    lines = [list(row) for row in rows]
    if not lines:
        click.echo(if_none, err=True)
        return
    for line in TextTable(titles).lines(lines):
        click.echo(line)
