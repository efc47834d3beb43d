"""Runs a command with a control plane of its own: `kcm test-env -- go test ./...`.

The command finds it by KUBECONFIG. USE_EXISTING_CLUSTER makes controller-runtime's envtest take
that cluster instead of starting its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import click

from kcm import errors
from kcm.testing.control_plane.plane import ControlPlane


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "--nodes",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Number of simulated nodes.",
)
@click.option(
    "--flag", "flags", multiple=True, help="A flag of `kcm manager`. May be given several times."
)
@click.option(
    "--crds",
    type=click.Path(exists=True, path_type=Path),
    help="A file or folder of CustomResourceDefinitions, which are established first.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def main(nodes: int, flags: tuple[str, ...], crds: Path | None, command: tuple[str, ...]) -> None:
    """Run COMMAND with a control plane of its own, and end with its exit code.

    It sets KUBECONFIG and USE_EXISTING_CLUSTER for the command.

    \b
    Examples:
      kcm test-env -- go test ./...
      kcm test-env --nodes 3 -- npm test
      kcm test-env --crds config/crd/bases -- go test ./...
      kcm test-env --flag=--node-monitor-grace-period=10s -- pytest
    """
    try:
        with ControlPlane(nodes=nodes, flags=flags, crds=crds) as control_plane:
            code = run(command, control_plane)
    except errors.KcmError as error:
        click.echo(f"error: {error}", err=True)
        code = 1
    sys.exit(code)


def run(command: Sequence[str], control_plane: ControlPlane) -> int:
    """Runs the command until it ends, and returns its exit code; that of a shell if it cannot be
    started or a signal ended it.
    """
    environment = {
        **os.environ,
        "KUBECONFIG": str(control_plane.kubeconfig),
        "USE_EXISTING_CLUSTER": "true",
    }
    try:
        process = subprocess.Popen(command, env=environment)
    except OSError as error:
        click.echo(f"error: {command[0]} cannot be started: {error.strerror}", err=True)
        return 127
    # Ctrl-C reaches the command as well, which decides what to do; kcm waits for its end.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    code = process.wait()
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    main()
