"""The command `kcm events`, which shows Events and, with `dead` and `replay`, dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

import click

from kcm import errors
from kcm.api.core_v1 import Event
from kcm.api.scheme import Kinds
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.cli.connect import open_redis, open_store
from kcm.cli.objects.documents import dump
from kcm.cli.objects.get import Layout, Presentation, list_selected
from kcm.cli.objects.table import TextTable
from kcm.cli.objects.targets import CommandSelection, namespace_options, parse_targets, selection
from kcm.kinds.printing.columns import event_last_seen
from kcm.store import Store
from kcm.store.eventbus import DEAD_LETTERS, DeadLetter, EventBus

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHOWN = 60  # the most characters of a dead letter's object in the table


@click.group(invoke_without_command=True)
@namespace_options
@click.option(
    "--for", "about", metavar="KIND/NAME", default="", help="Only Events about this object."
)
@click.option("--types", default="", help="Only Events of these types, such as Warning,Normal.")
@click.pass_context
def events(
    ctx: click.Context, namespace: str, all_namespaces: bool, about: str, types: str
) -> None:
    """Show Events of objects, the newest last; or dead letters of the event bus.

    \b
    Examples:
      kcm events -A
      kcm events --for rs/web
      kcm events dead                      injected events that were refused, and why
      kcm events replay 1712345678901-0    inject one again, or all with --all
    """
    if ctx.invoked_subcommand is not None:
        return
    chosen = selection(namespace, all_namespaces, "", "")
    with open_store() as store:
        all_events = list_selected(store, Event.resource, chosen)
    _print_events(_select(all_events, about, types, store.scheme), chosen)


def _select(all_events: Sequence[KubeObject], about: str, types: str, kinds: Kinds) -> list[Event]:
    kept = [event for event in all_events if isinstance(event, Event)]
    if about:
        target = parse_targets([about], kinds)[0]
        if not target.names:
            raise click.UsageError("--for needs KIND/NAME, for example rs/web")
        kind, name = target.resource.kind, target.names[0]
        kept = [e for e in kept if (e.involved_object.kind, e.involved_object.name) == (kind, name)]
    if types:
        wanted = {word.strip().lower() for word in types.split(",")}
        kept = [event for event in kept if (event.type or "").lower() in wanted]
    return sorted(kept, key=lambda event: event_last_seen(event) or _EPOCH)


def _print_events(selected: Sequence[Event], chosen: CommandSelection) -> None:
    if not selected:
        where = f" in {chosen.namespace} namespace" if chosen.namespace else ""
        click.echo(f"No events found{where}.", err=True)
        return
    view = Presentation(show_namespace=chosen.namespace is None)
    for line in Layout(Event.resource, view).lines(selected, datetime.now(UTC), header=True):
        click.echo(line)


@events.command()
@click.option("-o", "--output", "form", type=click.Choice(("json", "yaml")), default=None)
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True)
def dead(form: str | None, limit: int) -> None:
    """Show dead letters: injected events that were refused, the newest last.

    \b
    Example:
      kcm redis-cli XADD kcm:events '*' type ADDED object 'rubbish'
      kcm events dead
    """
    with open_redis() as io:
        letters = list(reversed(EventBus(Store(io)).list_dead_letters(limit)))
    if form:
        click.echo(dump([asdict(letter) for letter in letters], form))
    elif not letters:
        click.echo("No dead letters.", err=True)
    else:
        for line in TextTable(["ID", "TYPE", "REASON", "MESSAGE", "OBJECT"]).lines(
            [_row(letter) for letter in letters]
        ):
            click.echo(line)


def _row(letter: DeadLetter) -> list[str]:
    body = " ".join(letter.fields.get("object", "").split())
    shown = body if len(body) <= _SHOWN else body[: _SHOWN - 3] + "..."
    message = " ".join(letter.message.split())
    return [letter.id, letter.fields.get("type", ""), letter.reason, message, shown]


@events.command()
@click.argument("ids", nargs=-1, metavar="[ID...]")
@click.option("--all", "everything", is_flag=True, help="All dead letters.")
def replay(ids: tuple[str, ...], everything: bool) -> None:
    """Inject dead letters again.

    \b
    Examples:
      kcm events replay 1712345678901-0
      kcm events replay --all
    """
    if bool(ids) == everything:
        raise click.UsageError("name the IDs to replay (see `kcm events dead`), or use --all")
    with open_redis() as io:
        bus = EventBus(Store(io))
        letters = {letter.id for letter in bus.list_dead_letters(DEAD_LETTERS)}
        missing = [entry for entry in ids if entry not in letters]
        if missing:
            raise errors.NotFound(f"no dead letter has the ID {missing[0]}", name=missing[0])
        count = bus.replay(*ids)
    click.echo(f"{count} event{'' if count == 1 else 's'} replayed")
