"""The command `kcm get`, which shows objects as tables or text, once or as they change."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import click

from kcm import errors
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.cli import failures
from kcm.cli.connect import open_store
from kcm.cli.objects.documents import FORMATS, qualified_kind, render
from kcm.cli.objects.follow import follow
from kcm.cli.objects.table import TextTable
from kcm.cli.objects.targets import (
    CommandSelection,
    NamedObjects,
    namespace_options,
    parse_targets,
    require_names_alone,
    selection,
    selector_options,
)
from kcm.kinds.printing.columns import Column, columns_of
from kcm.store import Store
from kcm.store.reader import each_list_item


@dataclass(frozen=True)
class Presentation:
    """The options for the output of objects."""

    form: str = ""
    show_labels: bool = False
    show_namespace: bool = False
    show_kind: bool = False
    header: bool = True


@click.command()
@click.argument("what", nargs=-1, metavar="KIND[,KIND] [NAME...]")
@namespace_options
@selector_options
@click.option("-w", "--watch", is_flag=True, help="Show changes as they happen, until Ctrl-C.")
@click.option(
    "-o", "--output", "form", type=click.Choice(FORMATS), default=None, help="Output format."
)
@click.option("--show-labels", is_flag=True, help="Show labels as the last column.")
@click.option("--no-headers", is_flag=True, help="Print no line of titles.")
@click.option("--ignore-not-found", is_flag=True, help="A missing object is no error.")
def get(
    *,
    what: tuple[str, ...],
    namespace: str,
    all_namespaces: bool,
    selector: str,
    field_selector: str,
    watch: bool,
    form: str | None,
    show_labels: bool,
    no_headers: bool,
    ignore_not_found: bool,
) -> None:
    """List objects, and watch them.

    \b
    Examples:
      kcm get pods                         pods in the namespace default
      kcm get rs,pods -A -o wide           ReplicaSets and pods everywhere
      kcm get pod web-x7k2p -o yaml        one pod in full
      kcm get pods -l app=web -w           follow the pods of an app
      kcm get events --field-selector reason=SuccessfulCreate
    """
    chosen = selection(namespace, all_namespaces, selector, field_selector)
    with open_store() as store:
        targets = parse_targets(what, store.scheme)
        require_names_alone(targets, chosen)
        if chosen.fields:
            for target in targets:
                chosen.fields.check(target.resource)
        several = len(targets) > 1
        view = Presentation(form or "", show_labels, all_namespaces, several, header=not no_headers)
        if watch:
            with suppress(KeyboardInterrupt):
                follow_targets(store, targets, chosen, view)
        else:
            _show_once(store, targets, chosen, view, ignore_not_found)


def _show_once(
    store: Store,
    targets: Sequence[NamedObjects],
    chosen: CommandSelection,
    view: Presentation,
    ignore_not_found: bool,
) -> None:
    by_target: list[tuple[Resource, list[KubeObject]]] = []
    missing: list[errors.NotFound] = []
    for target in targets:
        by_target.append((target.resource, _find(store, target, chosen, missing)))
    everything = [obj for _, objects in by_target for obj in objects]
    if view.form in {"yaml", "json", "name"}:
        single = len(targets) == 1 and len(targets[0].names) == 1
        if everything or not (single or view.form == "name"):
            click.echo(render(everything, view.form, single=single))
    elif everything:
        _print_tables(by_target, view)
    elif not missing:
        click.echo(_nothing(targets, chosen), err=True)
    if missing and not ignore_not_found:
        for error in missing:
            failures.report(error)
        raise SystemExit(failures.EXIT_FAILURE)


def _find(
    store: Store, target: NamedObjects, chosen: CommandSelection, missing: list[errors.NotFound]
) -> list[KubeObject]:
    if not target.names:
        return list_selected(store, target.resource, chosen)
    objects = []
    for name in target.names:
        try:
            objects.append(store.get(target.resource, chosen.key(target.resource, name)))
        except errors.NotFound as error:
            missing.append(error)
    return objects


def list_selected(store: Store, resource: Resource, chosen: CommandSelection) -> list[KubeObject]:
    """Returns all selected objects of a kind."""
    items = each_list_item(
        store,
        resource,
        namespace=chosen.scope(resource),
        label_selector=chosen.labels,
        field_selector=chosen.fields,
    )
    return list(items)


def _nothing(targets: Sequence[NamedObjects], chosen: CommandSelection) -> str:
    if chosen.namespace is None or not any(t.resource.namespaced for t in targets):
        return "No resources found"
    return f"No resources found in {chosen.namespace} namespace."


def _print_tables(
    by_resource: Sequence[tuple[Resource, list[KubeObject]]], view: Presentation
) -> None:
    now = datetime.now(UTC)
    shown = [(resource, objects) for resource, objects in by_resource if objects]
    for index, (resource, objects) in enumerate(shown):
        if index:
            click.echo()
        layout = Layout(resource, view)
        for line in layout.lines(objects, now, header=view.header):
            click.echo(line)


class Layout:
    """The table of one kind, for given output options."""

    def __init__(self, resource: Resource, view: Presentation) -> None:
        self._view = view
        self._columns: list[Column] = columns_of(resource, wide=view.form == "wide")
        self._with_namespace = view.show_namespace and resource.namespaced
        titles = [column.title.upper() for column in self._columns]
        if self._with_namespace:
            titles.insert(0, "NAMESPACE")
        if view.show_labels:
            titles.append("LABELS")
        self._table = TextTable(titles)

    def lines(
        self, objects: Sequence[KubeObject], now: datetime, *, header: bool = False
    ) -> list[str]:
        """Returns a line for each object, with `header` below the titles."""
        return self._table.lines([self._row(obj, now) for obj in objects], header=header)

    def _row(self, obj: KubeObject, now: datetime) -> list[str]:
        cells = [self._cell(column, obj, now) for column in self._columns]
        if self._with_namespace:
            cells.insert(0, obj.namespace)
        if self._view.show_labels:
            pairs = (f"{name}={value}" for name, value in sorted(obj.labels.items()))
            cells.append(",".join(pairs) or "<none>")
        return cells

    def _cell(self, column: Column, obj: KubeObject, now: datetime) -> str:
        text = column.text(obj, now)
        if column.title.upper() == "NAME" and self._view.show_kind:
            text = f"{qualified_kind(obj)}/{text}"
        return " ".join(text.split("\n"))


def follow_targets(
    store: Store, targets: Sequence[NamedObjects], chosen: CommandSelection, view: Presentation
) -> None:
    """Prints the objects, then every change, until it is interrupted."""
    layouts = {target.resource: Layout(target.resource, view) for target in targets}
    titled: set[Resource] = set()

    def show(resource: Resource, objects: Sequence[KubeObject]) -> None:
        if view.form in {"yaml", "json", "name"}:
            for obj in objects:
                click.echo(("---\n" if view.form == "yaml" else "") + _document(obj, view.form))
            return
        header = view.header and resource not in titled
        titled.add(resource)
        for line in layouts[resource].lines(objects, datetime.now(UTC), header=header):
            click.echo(line)

    follow(store, targets, chosen, show, report=lambda text: click.echo(text, err=True))


def _document(obj: KubeObject, form: str) -> str:
    return render([obj], form, single=True)
