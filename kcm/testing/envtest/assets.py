"""`kcm envtest assets`: writes the folder with the programs that envtest starts, and prints it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import click

import kcm

# The interpreter starts without site-packages, which both programs begin without.
_PROGRAM = """#!/bin/sh
# Written by `kcm envtest assets`.
exec {python} -IS -c 'import sys; sys.path.insert(0, sys.argv.pop(1))
from kcm.testing.envtest.programs import {entry}; {entry}()' {root} "$@"
"""
_NO_KUBECTL = """#!/bin/sh
echo "kubectl is not installed: put it on the PATH, and run kcm envtest assets again" >&2
exit 127
"""
_PROGRAMS = {"kube-apiserver": "kube_apiserver", "etcd": "etcd"}


@click.group(name="envtest")
def main() -> None:
    """Serve suites that are written for controller-runtime's envtest."""


@main.command()
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where to write the programs. Default: a folder of this installation of kcm in the cache "
    "of the user.",
)
def assets(folder: Path | None) -> None:
    """Write kube-apiserver, etcd and kubectl for envtest into a folder, and print its path.

    \b
    Example:
      export KUBEBUILDER_ASSETS=$(kcm envtest assets)
      go test ./...
    """
    if sys.platform != "linux":  # elsewhere, libraries do not work in a fork
        raise click.ClickException("the programs need Linux: use kcm test-env --bare -- COMMAND")
    folder = (folder or _default_folder()).absolute()
    write_assets(folder)
    click.echo(folder)


def _default_folder() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "kcm" / "envtest" / sys.prefix.strip("/").replace("/", "-")


def write_assets(folder: Path) -> None:
    """Writes the programs into a folder, which is made if it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    python, root = map(shlex.quote, (sys.executable, str(Path(kcm.__file__).parents[1])))
    for name, entry in _PROGRAMS.items():
        _write(folder / name, _PROGRAM.format(python=python, root=root, entry=entry))
    kubectl, target = folder / "kubectl", shutil.which("kubectl")
    if target is None:
        _write(kubectl, _NO_KUBECTL)
    elif Path(target).absolute() != kubectl:
        partial = folder / f".kubectl.{os.getpid()}"
        partial.symlink_to(target)
        partial.replace(kubectl)


def _write(path: Path, text: str) -> None:
    """Replaces a program, which others may be running."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text)
    partial.chmod(0o755)
    partial.replace(path)


if __name__ == "__main__":
    main()
