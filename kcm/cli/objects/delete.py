"""The command `kcm delete`: deletes objects by name, by label, or by file."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from kcm import errors
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.cli import failures
from kcm.cli.connect import open_store
from kcm.cli.objects.documents import qualified_kind
from kcm.cli.objects.get import list_selected
from kcm.cli.objects.manifests import file_options, for_each
from kcm.cli.objects.targets import (
    CommandSelection,
    namespace_options,
    parse_targets,
    require_names_alone,
    selection,
    selector_options,
)
from kcm.store import DeleteOptions, Store
from kcm.store.options import PropagationPolicy

_POLICIES: dict[str, PropagationPolicy] = {
    "background": "Background",
    "foreground": "Foreground",
    "orphan": "Orphan",
}
_BLOCK_MS = 500  # milliseconds that one read waits for changes


@dataclass(frozen=True)
class DeletionMode:
    """How objects are deleted, and how long the command waits."""

    options: DeleteOptions
    force: bool
    wait: bool
    timeout: float
    ignore_not_found: bool


@click.command()
@click.argument("what", nargs=-1, metavar="[KIND NAME... | KIND/NAME...]")
@file_options
@namespace_options
@selector_options
@click.option("--all", "everything", is_flag=True, help="All objects of the kind.")
@click.option(
    "--cascade",
    type=click.Choice(tuple(_POLICIES)),
    default="background",
    show_default=True,
    help="What happens to dependents: deleted afterwards, deleted first, or kept.",
)
@click.option(
    "--grace-period",
    type=int,
    default=-1,
    help="Seconds that pods get to terminate; -1: as the object says.",
)
@click.option("--force", is_flag=True, help="Remove pods at once, without waiting for their nodes.")
@click.option(
    "--wait/--no-wait", default=True, show_default=True, help="Wait until the objects are gone."
)
@click.option("--timeout", type=float, default=0.0, help="Seconds to wait; 0: no limit.")
@click.option("--ignore-not-found", is_flag=True, help="A missing object is no error.")
def delete(
    *,
    what: tuple[str, ...],
    files: tuple[str, ...],
    recursive: bool,
    namespace: str,
    all_namespaces: bool,
    selector: str,
    field_selector: str,
    everything: bool,
    cascade: str,
    grace_period: int,
    force: bool,
    wait: bool,
    timeout: float,
    ignore_not_found: bool,
) -> None:
    """Delete objects.

    \b
    Examples:
      kcm delete pod web-x7k2p             its ReplicaSet replaces it at once
      kcm delete rs web                    its pods are deleted, too
      kcm delete rs web --cascade orphan   its pods stay
      kcm delete -f web.yaml
      kcm delete pods -l app=web
    """
    options = DeleteOptions(_grace(grace_period, force), _POLICIES[cascade])
    how = DeletionMode(options, force, wait, timeout, ignore_not_found)
    chosen = selection(namespace, all_namespaces, selector, field_selector)
    with open_store() as store:
        if files:
            _delete_files(store, files, recursive, namespace, how)
        else:
            _delete_all(store, list(_choose(store, what, chosen, everything)), how)


def _grace(seconds: int, force: bool) -> int | None:
    if force and seconds > 0:
        raise click.UsageError("--force and --grace-period greater than 0 cannot be combined")
    if seconds == 0 and not force:
        return 1  # as kubectl: 1 s lets the node kill the containers, which --force does not
    if force:
        return 0
    return None if seconds < 0 else seconds


def _choose(
    store: Store, what: Sequence[str], chosen: CommandSelection, everything: bool
) -> Iterator[tuple[Resource, str]]:
    targets = parse_targets(what, store.scheme)
    require_names_alone(targets, chosen)
    for target in targets:
        if target.names:
            yield from ((target.resource, chosen.key(target.resource, n)) for n in target.names)
        elif everything or chosen.labels or chosen.fields:
            for obj in list_selected(store, target.resource, chosen):
                yield target.resource, obj.key
        else:
            raise click.UsageError("name what to delete, or use -l SELECTOR or --all")


def _delete_all(store: Store, objects: Sequence[tuple[Resource, str]], how: DeletionMode) -> None:
    if not objects:
        click.echo("No resources found")
    marked, failed = [], 0
    for resource, key in objects:
        try:
            obj = store.delete(resource, key, how.options)
        except errors.NotFound as error:
            if not how.ignore_not_found:
                failures.report(error)
                failed += 1
            continue
        click.echo(_deletion_line(obj, how))
        marked.append(obj)
    if how.wait:
        wait_gone(store, marked, how.timeout)
    if failed:
        raise SystemExit(failures.EXIT_FAILURE)


def _delete_files(
    store: Store, files: Sequence[str], recursive: bool, namespace: str, how: DeletionMode
) -> None:
    marked = []

    def act(obj: KubeObject) -> str:
        resource = obj.resource
        try:
            deleted = store.delete(resource, obj.key, how.options)
        except errors.NotFound:
            if how.ignore_not_found:
                return f'{qualified_kind(obj)} "{obj.name}" not found, ignored'
            raise
        marked.append(deleted)
        return _deletion_line(deleted, how)

    for_each(files, recursive, namespace, "deleting", act, kinds=store.scheme)
    if how.wait:
        wait_gone(store, marked, how.timeout)


def _deletion_line(obj: KubeObject, how: DeletionMode) -> str:
    return f'{qualified_kind(obj)} "{obj.name}" {"force " if how.force else ""}deleted'


def wait_gone(store: Store, objects: Sequence[KubeObject], timeout: float) -> None:
    """Waits until none of these objects exists. New objects of the same names do not count.

    Raises KcmError after `timeout` seconds; 0 means no limit.
    """
    deadline = time.monotonic() + timeout if timeout else None
    left = list(objects)
    while True:
        position = store.resource_version()
        left = [obj for obj in left if _exists(store, obj)]
        if not left:
            return
        if deadline is not None and time.monotonic() >= deadline:
            raise errors.KcmError(f'timed out waiting for "{left[0].name}" to be gone')
        kinds = {obj.resource: position for obj in left}
        store.read_changes(kinds, _BLOCK_MS)


def _exists(store: Store, obj: KubeObject) -> bool:
    try:
        return store.get(obj.resource, obj.key).uid == obj.uid
    except errors.NotFound:
        return False
