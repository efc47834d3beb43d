"""`kcm manager`: reads its flags, and runs a manager until a signal stops it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence

import click

from kcm import __version__, errors
from kcm.logs import configure
from kcm.loops import start_thread
from kcm.manager.context.context import build_context
from kcm.manager.run import ManagerRun
from kcm.options.commandline import SectionedCommand, build_command, read_given_flags
from kcm.options.flags import all_flags
from kcm.options.manager import ManagerOptions
from kcm.settings import Settings


def _main(stop_with_stdin: bool, version: bool, **params: object) -> None:
    if version:
        click.echo(f"kcm v{__version__}")
        return
    command = click.get_current_context().command
    assert isinstance(command, SectionedCommand)  # this function is that of one
    options = ManagerOptions.load(read_given_flags(params, all_flags(command.types)))
    settings = Settings()
    configure(settings.log_format, settings.log_level)
    run = ManagerRun(build_context(settings, options, kind="manager"))
    _on_signals(run.ask_to_stop)
    if stop_with_stdin:
        _on_closed_stdin(run.ask_to_stop)
    click.get_current_context().exit(run.run())


def _on_signals(stop: Callable[[], None]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop())


def _on_closed_stdin(stop: Callable[[], None]) -> None:
    def wait() -> None:
        # Not sys.stdin: the interpreter aborts if a thread holds its lock at the end.
        while os.read(0, 4096):
            pass
        stop()

    start_thread("kcm-stdin", wait)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command, and returns its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        command = build_command(arguments, _main)
        result = command.main(arguments, prog_name="kcm manager", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (errors.ConfigurationError, errors.StoreUnavailable) as error:
        click.echo(f"Error: {error}", err=True)
        return 1
    return result if isinstance(result, int) else 0
