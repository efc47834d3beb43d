"""The commands `kcm backup` and `kcm restore`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click

from kcm.cli import backup_files as backups
from kcm.cli.connect import open_store


def _progress(word: str) -> Callable[[int], None]:
    def echo(count: int) -> None:
        click.echo(f"{word} {count} objects ...", err=True)

    return echo


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup(file: Path) -> None:
    """Write all objects to FILE, as JSON lines.

    The file appears only when it is complete. It has all Secrets, too: protect
    it like the store.

    \b
    Example:
      kcm backup kcm-$(date +%F).jsonl
    """
    with open_store() as store:
        count = backups.backup(store, file, datetime.now(UTC), _progress("written"))
    click.echo(f"{count} objects written to {file}")


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def restore(file: Path) -> None:
    """Create all objects of a backup, in an empty store.

    The file is read completely before anything is written. Stop workers first,
    otherwise they act on some objects before the others exist.

    \b
    Example:
      kcm restore kcm-2024-05-01.jsonl
    """
    with open_store() as store:
        count = backups.restore(store, file, _progress("restored"))
    click.echo(f"{count} objects restored from {file}")
