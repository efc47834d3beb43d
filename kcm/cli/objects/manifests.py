"""Reads objects from files, folders and standard input."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from kcm import errors
from kcm.api import codec
from kcm.api.scheme import Kinds
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.cli import failures
from kcm.cli.objects.targets import DEFAULT_NAMESPACE

_DONE = {"applying": "applied", "deleting": "deleted"}
SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True)
class Manifest:
    """The body of an object, and the file that it comes from."""

    source: str
    body: dict[str, Any]

    def decode(self, kinds: Kinds, namespace: str) -> KubeObject:
        """Returns the object, in its own namespace or otherwise in `namespace`.

        Raises BadRequest, also if the object has another namespace than `-n`, and Invalid.
        """
        obj = codec.decode(self.body, kinds, strict=True)
        if not obj.resource.namespaced:
            return obj
        if namespace and obj.namespace not in {"", namespace}:
            raise errors.BadRequest(
                f'the namespace from the provided object "{obj.namespace}" does not match the '
                f"namespace \"{namespace}\". You must pass '--namespace={obj.namespace}' to "
                "perform this operation."
            )
        return obj.with_metadata(namespace=obj.namespace or namespace or DEFAULT_NAMESPACE)


def file_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options `-f` and `-R` to a command."""
    command = click.option("-R", "--recursive", is_flag=True, help="Read subfolders, too.")(command)
    return click.option(
        "-f",
        "--filename",
        "files",
        metavar="FILE|DIR|-",
        multiple=True,
        help="YAML or JSON: a file, a folder of files, or - for standard input. Repeatable.",
    )(command)


def for_each(
    files: Sequence[str],
    recursive: bool,
    namespace: str,
    doing: str,
    act: Callable[[KubeObject], str],
    *,
    kinds: Kinds,
) -> None:
    """Calls `act` for each object of these kinds, and prints what it returns.

    A failure is printed, and the next object follows. In the end the command exits with code 1 if
    anything failed. `doing` is one of the keys of _DONE.
    """
    failed = count = 0
    for source in _sources(files, recursive):
        try:
            manifests = _read(source)
        except errors.ApiError as error:
            failed += 1
            failures.report(error)
            continue
        for manifest in manifests:
            count += 1
            try:
                click.echo(act(manifest.decode(kinds, namespace)))
            except errors.ApiError as error:
                failed += 1
                failures.report(error, f'error when {doing} "{manifest.source}"')
    if not count and not failed:
        raise errors.ConfigurationError(f"no objects found: nothing to be {_DONE[doing]}")
    if failed:
        raise SystemExit(failures.EXIT_FAILURE)


def _sources(files: Sequence[str], recursive: bool) -> Iterator[str]:
    if not files:
        raise click.UsageError("must specify -f FILE, a folder, or - for standard input")
    for name in files:
        path = Path(name)
        if name == "-" or path.is_file():
            yield name
        elif path.is_dir():
            yield from _in_folder(path, recursive)
        else:
            raise errors.ConfigurationError(f'the path "{name}" does not exist')


def _in_folder(folder: Path, recursive: bool) -> Iterator[str]:
    paths = sorted(folder.rglob("*") if recursive else folder.iterdir())
    chosen = [str(path) for path in paths if path.suffix in SUFFIXES and path.is_file()]
    if not chosen:
        raise errors.ConfigurationError(f"{folder} has no files that end in {', '.join(SUFFIXES)}")
    yield from chosen


def _read(source: str) -> list[Manifest]:
    data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    shown = "STDIN" if source == "-" else source
    return [Manifest(shown, body) for body in codec.load_yaml_documents(data, shown)]
