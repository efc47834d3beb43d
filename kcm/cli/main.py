"""The command `kcm`, whose subcommands are modules that are imported only when they run.

Errors of `kcm.errors` are printed as one line in kubectl's words, and the exit code is 1.
`KCM_DEBUG=1` shows the traceback.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click

from kcm import __version__
from kcm.cli.failures import run_reporting
from kcm.cli.lazy_group import LazyGroup
from kcm.interpreter import pause_collector

# By section and command: where the command is, and its short help.
COMMANDS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Run the control plane": {
        "up": ("kcm.cli.up.command:up", "Start everything on this machine, until Ctrl-C."),
        "manager": ("kcm.cli.processes:manager", "Run only the manager."),
        "apiserver": ("kcm.cli.processes:apiserver", "Run only the Kubernetes API server."),
        "nodes": ("kcm.cli.nodes.command:nodes", "Simulate nodes; stop, start and partition them."),
        "cloud": ("kcm.cli.cloud.command:cloud", "Look at the simulated cloud, and script it."),
        "token": ("kcm.cli.token.command:token", "Make tokens with which machines join."),
        "kubelet": ("kcm.cli.kubelet.command:kubelet", "Make this machine a node that runs pods."),
        "worker": ("kcm.cli.processes:worker", "Run only a Celery worker."),
        "beat": ("kcm.cli.processes:beat", "Run only Celery beat."),
        "flower": ("kcm.cli.processes:flower", "Run only Flower."),
    },
    "Work with objects": {
        "apply": (
            "kcm.cli.objects.apply:apply",
            "Create objects, or change them to match a file.",
        ),
        "get": ("kcm.cli.objects.get:get", "List objects, and watch them."),
        "delete": ("kcm.cli.objects.delete:delete", "Delete objects."),
    },
    "See what is going on": {
        "status": ("kcm.cli.status:status", "Show nodes, queues, leases, streams and workers."),
        "events": ("kcm.cli.events:events", "Show Events of objects, and dead letters of the bus."),
        "redis-cli": ("kcm.cli.redis_cli:redis_cli", "Send commands to kcm's Redis."),
        "version": ("kcm.cli.version:version", "Show the versions of kcm and of the server."),
    },
    "Test operators": {
        "test-env": (
            "kcm.cli.processes:test_env",
            "Run a command with a control plane of its own.",
        ),
        "envtest": (
            "kcm.cli.processes:envtest",
            "Serve suites that are written for controller-runtime's envtest.",
        ),
    },
    "Keep the data": {
        "backup": ("kcm.cli.backups:backup", "Write all objects to a file."),
        "restore": ("kcm.cli.backups:restore", "Create all objects of a backup."),
    },
}

_PLACES = {name: place for section in COMMANDS.values() for name, (place, _) in section.items()}


@contextmanager
def _let_ctrl_c_kill() -> Iterator[None]:
    """Lets Ctrl-C kill the process at once, instead of raising KeyboardInterrupt.

    An import runs callbacks of weak references, in which Python ignores exceptions, so the process
    would continue after an interrupt.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class Commands(LazyGroup):
    """The commands of kcm by section. Errors are printed, and an import can be interrupted."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        with _let_ctrl_c_kill(), pause_collector():
            return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, text) for name, (_, text) in commands.items()])

    def main(self, *args: Any, **kwargs: Any) -> Any:
        return run_reporting(lambda: super(Commands, self).main(*args, **kwargs))


def use_state_dir(_: click.Context, __: click.Parameter, value: str | None) -> None:
    """Sets the state folder from the command line, for child processes, too."""
    if value:
        os.environ["KCM_STATE_DIR"] = os.path.abspath(value)


@click.group(cls=Commands, places=_PLACES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kcm")
@click.option(
    "--state-dir",
    metavar="DIR",
    expose_value=False,
    is_eager=True,
    callback=use_state_dir,
    help="State folder of the embedded server; also KCM_STATE_DIR. Default: .kcm in this folder.",
)
def main() -> None:
    """Kubernetes' control-plane loops on Celery and Redis.

    \b
    Start it in one terminal, use it in another:
      kcm up
      kcm apply -f examples/01-replicaset/web.yaml
      kcm get rs,pods -w
      kcm status

    kcm COMMAND --help explains each command. Commands find Redis by
    KCM_REDIS_URL, or in the state folder.
    """


if __name__ == "__main__":
    main()
