"""The command `kcm version`."""

from __future__ import annotations

import click

from kcm import KUBERNETES_VERSION, __version__, errors
from kcm.cli.connect import open_redis
from kcm.redisio.checks import server_version


@click.command()
def version() -> None:
    """Show the versions of kcm, of the Kubernetes it follows, and of the server."""
    click.echo(f"kcm: {__version__}")
    click.echo(f"Kubernetes behaviour: {KUBERNETES_VERSION}")
    try:
        with open_redis() as io:
            click.echo(f"server: {server_version(io)}")
    except errors.Temporary as error:
        click.echo(f"server: {error.message}")
