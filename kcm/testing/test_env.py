"""Runs a command with a control plane of its own: `kcm test-env -- go test ./...`.

The command finds it by KUBECONFIG, and the HTTP API by KCM_TEST_API. USE_EXISTING_CLUSTER makes
controller-runtime's envtest take that cluster instead of starting its own.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click
import yaml

from kcm import errors
from kcm.testing.control_plane.plane import ControlPlane
from kcm.testing.remote.server import serve as serve_api

_FILE = click.Path(exists=True, path_type=Path)


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "--bare",
    is_flag=True,
    help="A cluster as in controller-runtime's envtest: without controllers, nodes, StorageClass "
    "and service accounts, unless --controllers and --nodes ask for some.",
)
@click.option(
    "--nodes",
    type=click.IntRange(0),
    help="Number of simulated nodes. Default: 1, with --bare 0.",
)
@click.option(
    "--programs",
    is_flag=True,
    help="Let simulated containers do what their commands say, as far as that is understood: echo, "
    "exit, env, cat, sleep and the like.",
)
@click.option(
    "--controllers",
    metavar="NAME,...",
    help="Which controllers run, as `kcm manager --controllers`. Default: all, with --bare none.",
)
@click.option(
    "--flag", "flags", multiple=True, help="A flag of `kcm manager`. May be given several times."
)
@click.option(
    "--config",
    type=_FILE,
    help="A file with a KubeControllerManagerConfiguration, as `kcm manager --config`.",
)
@click.option(
    "--seed",
    type=int,
    help="Draw all names, uids and keys from this number. The clock stands at 2030-01-01 then, and "
    "controllers work only while a client of the HTTP API waits for them.",
)
@click.option(
    "--crds",
    type=_FILE,
    help="A file or folder of CustomResourceDefinitions, which are established first.",
)
@click.option(
    "--local-storage-class/--no-local-storage-class",
    "storage_class",
    default=True,
    help="Whether there is a default StorageClass `local`, with volumes on nodes.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the kubeconfig into this new file as well, and remove it at the end.",
)
@click.option(
    "--serve",
    is_flag=True,
    help="Run no command: print a line of JSON that says where everything is, and end with the "
    "end of standard input.",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def main(
    *,
    command: tuple[str, ...],
    serve: bool,
    kubeconfig: Path | None,
    controllers: str | None,
    config: Path | None,
    **arguments: Any,
) -> None:
    """Run COMMAND with a control plane of its own, and end with its exit code.

    It sets KUBECONFIG and USE_EXISTING_CLUSTER for the command, and KCM_TEST_API and
    KCM_TEST_TOKEN for the HTTP API, which holds the clock and has things fail.

    \b
    Examples:
      kcm test-env -- chainsaw test
      kcm test-env --nodes 3 -- npm test
      kcm test-env --bare --crds config/crd/bases -- go test ./...
      kcm test-env --bare --controllers garbage-collector,namespace -- pytest
      kcm test-env --flag=--node-monitor-grace-period=10s -- pytest
    """
    if serve == bool(command):
        raise click.UsageError("give a COMMAND, or --serve")
    try:
        plane = ControlPlane(
            controllers=controllers.split(",") if controllers is not None else None,
            config=_read_config(config) if config is not None else None,
            **arguments,
        )
        with plane as control_plane, serve_api(control_plane) as remote:
            environment = {"KCM_TEST_API": remote.url, "KCM_TEST_TOKEN": remote.token}
            with _copy_kubeconfig(control_plane, kubeconfig) as path:
                environment["KUBECONFIG"] = str(path.absolute())
                if serve:
                    code = _serve({"server": control_plane.url, **environment})
                else:
                    code = run(command, environment)
    except errors.KcmError as error:
        click.echo(f"error: {error}", err=True)
        code = 1
    sys.exit(code)


def _read_config(path: Path) -> Mapping[str, Any]:
    try:
        document = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, yaml.YAMLError, UnicodeError) as error:
        raise errors.ConfigurationError(f"--config {path}: {error}") from error
    if not isinstance(document, dict):
        raise errors.ConfigurationError(f"--config {path}: is no mapping")
    return document


@contextmanager
def _copy_kubeconfig(control_plane: ControlPlane, copy: Path | None) -> Iterator[Path]:
    """Yields the path of the kubeconfig. If `copy` is given, it is there until the block ends."""
    if copy is None:
        yield control_plane.kubeconfig
        return
    if copy.exists():  # it may be the only one of another cluster
        raise errors.ConfigurationError(f"--kubeconfig {copy}: there is such a file already")
    try:
        shutil.copy(control_plane.kubeconfig, copy)
    except OSError as error:
        raise errors.ConfigurationError(f"--kubeconfig {copy}: {error}") from error
    try:
        yield copy
    finally:
        copy.unlink(missing_ok=True)


def _serve(details: Mapping[str, str]) -> int:
    """Prints where everything is, and waits for the end of standard input or a signal."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    click.echo(json.dumps(details))
    with suppress(KeyboardInterrupt):
        sys.stdin.read()
    return 0


def run(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Runs the command until it ends, and returns its exit code; that of a shell if it cannot be
    started or a signal ended it. `variables` are added to its environment.
    """
    environment = {**os.environ, "USE_EXISTING_CLUSTER": "true", **variables}
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
