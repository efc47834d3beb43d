"""The commands that run one process: `kcm manager`, `apiserver`, `worker`, `beat`, `flower`,
`test-env` and `envtest`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from kcm.cli import commandlines
from kcm.options import pools

_PASSES_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False}


def _become(command: Sequence[str]) -> None:
    sys.stdout.flush()
    os.execv(command[0], list(command))


@click.command(context_settings=_PASSES_ON, add_help_option=False)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def manager(args: tuple[str, ...]) -> None:
    """Run only the manager; its flags follow (`kcm manager --help`)."""
    _become(commandlines.manager(args))


@click.command(context_settings=_PASSES_ON, add_help_option=False)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def apiserver(args: tuple[str, ...]) -> None:
    """Run only the API server; its flags follow (`kcm apiserver --help`)."""
    _become(commandlines.apiserver(args))


@click.command(context_settings=_PASSES_ON)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def worker(args: tuple[str, ...]) -> None:
    """Run only a Celery worker, which starts a manager, too; Celery's options follow.

    \b
    Examples:
      kcm worker -c 4
      kcm worker -P threads -c 4              is the manager itself, in less memory
      kcm worker -c 4 -n big@%h -Q workloads,ticks
      KCM_WORKER_MANAGER=false kcm worker     if `kcm manager` runs on its own
    """
    fault = pools.find_fault(_find_pool(args))
    if fault:  # where the pool's package is missing, Celery ends before it loads kcm
        raise click.UsageError(fault)
    _become(commandlines.worker(args))


def _find_pool(args: Sequence[str]) -> str:
    """Returns the value of Celery's option for the pool, "" without one."""
    for at, argument in enumerate(args):
        name, _, value = argument.partition("=")
        if name in ("-P", "--pool"):
            return value or "".join(args[at + 1 : at + 2])
        if name.startswith("-P"):
            return name.removeprefix("-P")
    return ""


@click.command(context_settings=_PASSES_ON)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def beat(args: tuple[str, ...]) -> None:
    """Run only Celery beat. Any number may run; one of them is the leader."""
    _become(commandlines.beat(args))


@click.command(context_settings=_PASSES_ON)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def flower(args: tuple[str, ...]) -> None:
    """Run only Flower, with kcm's login and read-only; Flower's options follow.

    \b
    Example:
      KCM_FLOWER_PORT=5556 kcm flower
    """
    _become(commandlines.flower(args))


@click.command(context_settings=_PASSES_ON, add_help_option=False)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def test_env(args: tuple[str, ...]) -> None:
    """Run a command with a control plane of its own (`kcm test-env --help`)."""
    _become(commandlines.test_env(args))


@click.command(context_settings=_PASSES_ON, add_help_option=False)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def envtest(args: tuple[str, ...]) -> None:
    """Serve suites that are written for envtest (`kcm envtest --help`)."""
    _become(commandlines.envtest(args))
