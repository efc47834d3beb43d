"""The command `kcm describe`, which shows objects in full with their Events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import click

from kcm.api import codec
from kcm.api.core_v1 import Event
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.cli import failures
from kcm.cli.connect import open_store
from kcm.cli.objects.documents import dump
from kcm.cli.objects.get import Layout, Presentation, list_selected
from kcm.cli.objects.targets import CommandSelection, namespace_option, parse_targets, selection
from kcm.printing.columns import event_last_seen
from kcm.store import Store
from kcm.store.merge import LAST_APPLIED

_WIDTH = 18  # characters of the titles
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@click.command()
@click.argument("what", nargs=-1, required=True, metavar="KIND [NAME...] | KIND/NAME...")
@namespace_option
def describe(what: tuple[str, ...], namespace: str) -> None:
    """Show objects in full, with their conditions and Events.

    \b
    Examples:
      kcm describe rs web
      kcm describe pod/web-x7k2p
    """
    chosen = selection(namespace)
    first = True
    with open_store() as store:
        for target in parse_targets(what, store.scheme):
            names = target.names or [o.name for o in list_selected(store, target.resource, chosen)]
            for name in names:
                obj = store.get(target.resource, chosen.key(target.resource, name))
                click.echo(("" if first else "\n\n") + "\n".join(lines(obj, _events(store, obj))))
                first = False
    if first:
        click.echo("No resources found", err=True)
        raise SystemExit(failures.EXIT_FAILURE)


def _events(store: Store, obj: KubeObject) -> list[Event]:
    namespace = obj.namespace or "default"
    all_events = list_selected(store, Event.resource, CommandSelection(namespace))
    about = [e for e in all_events if isinstance(e, Event) and e.involved_object.uid == obj.uid]
    return sorted(about, key=lambda event: event_last_seen(event) or _EPOCH)


def lines(obj: KubeObject, events: list[Event]) -> Iterator[str]:
    """Yields the lines that describe an object."""
    body = codec.to_dict(obj)
    metadata = body.get("metadata", {})
    yield _line("Name", obj.name)
    if obj.namespace:
        yield _line("Namespace", obj.namespace)
    yield from _mapping("Labels", metadata.get("labels"))
    annotations = metadata.get("annotations") or {}
    yield from _mapping("Annotations", {k: v for k, v in annotations.items() if k != LAST_APPLIED})
    yield _line("Created", metadata.get("creationTimestamp", ""))
    if "deletionTimestamp" in metadata:
        yield _line("Deleted", metadata["deletionTimestamp"])
    for owner in metadata.get("ownerReferences", ()):
        title = "Controlled By" if owner.get("controller") else "Owned By"
        yield _line(title, f"{owner['kind']}/{owner['name']}")
    conditions = (body.get("status") or {}).pop("conditions", [])
    yield from _section("Spec", body.get("spec"))
    yield from _section("Status", body.get("status"))
    yield from _conditions(conditions)
    yield from _event_lines(events)


def _line(title: str, text: str) -> str:
    return f"{title + ':':<{_WIDTH}}{text}"


def _mapping(title: str, pairs: Mapping[str, str] | None) -> Iterator[str]:
    shown = [f"{name}={value}" for name, value in sorted((pairs or {}).items())]
    for index, text in enumerate(shown or ["<none>"]):
        yield " " * _WIDTH + text if index else _line(title, text)


def _section(title: str, body: Any) -> Iterator[str]:
    if not body:
        return
    yield f"{title}:"
    for line in dump(body, "yaml").splitlines():
        yield f"  {line}"


def _conditions(conditions: list[dict[str, Any]]) -> Iterator[str]:
    if not conditions:
        return
    yield "Conditions:"
    for condition in conditions:
        words = [condition.get("type", ""), condition.get("status", "")]
        words += [condition[name] for name in ("reason", "message") if condition.get(name)]
        yield "  " + "  ".join(words)


def _event_lines(events: list[Event]) -> Iterator[str]:
    if not events:
        yield _line("Events", "<none>")
        return
    yield "Events:"
    layout = Layout(Event.resource, Presentation())
    for line in layout.lines(events, datetime.now(UTC), header=True):
        yield f"  {line}"
