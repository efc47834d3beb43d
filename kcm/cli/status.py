"""The command `kcm status`, which shows the state of nodes, queues, leases and processes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import click

from kcm.cli import evictions
from kcm.cli.alerts import list_alerts
from kcm.cli.connect import open_redis
from kcm.cli.objects.documents import dump
from kcm.cli.objects.table import TextTable
from kcm.cli.overview import Overview, read_overview
from kcm.kinds.printing.durations import human_duration

_CLEAR = "\x1b[H\x1b[2J"  # moves the cursor home and clears the screen


@click.command()
@click.option("-o", "--output", "form", type=click.Choice(("json", "yaml")), default=None)
@click.option("-w", "--watch", is_flag=True, help="Refresh the output until Ctrl-C.")
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=2.0,
    help="Seconds between refreshes with --watch.",
)
def status(form: str | None, watch: bool, every: float) -> None:
    """Show nodes, queues, leases, streams and workers.

    \b
    What to look at:
      ALERT                         docs/debugging.md has a section of this name
      UNKNOWN                       unreachable nodes: kcm nodes list
      DEPTH and OLDEST that grow    too few workers, or a sync that hangs
      FAILING and RETRIES           syncs that fail: kcm events, the worker's log
      a lease without a holder      no manager (dispatch, ingest) or no beat
      events:dead                   kcm events dead
      DAMAGED                       stored but unreadable: kcm delete KIND NAME
      a zone whose rate is 0        no evictions: too many nodes are not ready, of it or of all
    """
    with open_redis() as io, suppress(KeyboardInterrupt):
        while True:
            overview = read_overview(io)
            text = dump(_document(overview), form) if form else "\n".join(lines(overview))
            click.echo(_CLEAR + text if watch and not form else text)
            if not watch:
                return
            time.sleep(every)


def _document(overview: Overview) -> dict[str, Any]:
    alerts = [alert._asdict() for alert in list_alerts(overview)]
    return {"alerts": alerts, **overview.to_dict()}


def lines(overview: Overview) -> Iterator[str]:
    """Yields the lines of the overview's tables."""
    if alerts := list(list_alerts(overview)):
        yield from TextTable(["ALERT", "WHAT"]).lines(alerts)
        yield ""
    if overview.zones:
        yield from _zones(overview)
        yield ""
    yield from _queues(overview)
    yield ""
    yield from _leaders(overview)
    yield ""
    yield from _streams(overview)
    yield ""
    yield from _processes(overview)
    yield from _list_damaged(overview)
    yield from evictions.lines(overview.evictions)


def _zones(overview: Overview) -> list[str]:
    table = TextTable(["ZONE", "NODES", "READY", "NOT READY", "UNKNOWN", "CORDONED"])
    return table.lines(
        [
            zone.name or "(none)",
            str(zone.nodes),
            str(zone.ready),
            str(zone.not_ready),
            str(zone.unknown),
            str(zone.unschedulable),
        ]
        for zone in overview.zones
    )


def _queues(overview: Overview) -> list[str]:
    table = TextTable(
        ["CONTROLLER", "DEPTH", "IN FLIGHT", "DELAYED", "OLDEST", "FAILING", "RETRIES", "LAST SYNC"]
    )
    return table.lines(
        [
            queue.controller,
            str(queue.depth),
            str(queue.in_flight),
            str(queue.delayed),
            human_duration(queue.oldest) if queue.depth else "-",
            str(queue.failing),
            str(queue.retries),
            "never" if queue.last_sync is None else f"{human_duration(queue.last_sync)} ago",
        ]
        for queue in overview.queues
    )


def _leaders(overview: Overview) -> list[str]:
    if not overview.leaders:
        return ["No lease is held: neither a manager nor beat runs."]
    table = TextTable(["LEASE", "HOLDER", "EXPIRES IN"])
    return table.lines([x.lease, x.holder, f"{x.expires_in:.1f}s"] for x in overview.leaders)


def _streams(overview: Overview) -> list[str]:
    rows = [[name, str(length)] for name, length in overview.streams.items()]
    counters = ", ".join(f"{count} {name}" for name, count in sorted(overview.bus.items()))
    return [
        *TextTable(["STREAM", "ENTRIES"]).lines(rows),
        "",
        f"Event bus: {counters or 'nothing yet'}",
    ]


def _list_damaged(overview: Overview) -> Iterator[str]:
    """Yields a table of the damaged objects, no lines if there are none."""
    if overview.damaged:
        yield ""
        table = TextTable(["DAMAGED", "NAME", "WHY"])
        yield from table.lines([*of.split(" ", 1), why] for of, why in overview.damaged.items())


def _processes(overview: Overview) -> list[str]:
    if not overview.processes:
        return ["No process sent a heartbeat within 30 s."]
    table = TextTable(["PROCESS", "NAME", "HOST", "PID", "LAST SEEN", "QUEUES"])
    return table.lines(
        [p.kind, p.name, p.host, str(p.pid), f"{p.silent:.0f}s ago", ",".join(p.queues)]
        for p in overview.processes
    )
