"""The command line: every flag, in sections, computed from the registry.

Source: NewControllerManagerCommand in
cmd/kube-controller-manager/app/controllermanager.go, Kubernetes 1.33.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

import click
import structlog

from kcm import __version__, errors
from kcm.component.configfile import read_config
from kcm.component.context import build_context
from kcm.component.enabling import controllers_disabled_by_default, known_controllers
from kcm.component.flags import Flag, all_flags
from kcm.component.options import CONFIG_ENV, ManagerOptions
from kcm.logs import configure
from kcm.manager.run import Run
from kcm.reconcile.contract import Controller
from kcm.registry import controller_types
from kcm.settings import Settings

log = structlog.get_logger("kcm.manager")

LONG = """\
The kcm controller manager starts the control loops of Kubernetes that this kcm has: it turns
changes of objects into keys of the controllers' work queues, which Celery workers empty. Flags
win over environment variables (KCM_ and the flag in capitals), these over --config, that over
the defaults."""
GLOBAL = (
    ("--config FILE", "A KubeControllerManagerConfiguration file. (KCM_CONFIG; kcm's own.)"),
    ("--stop-with-stdin", "End when standard input is closed, so as not to outlive a parent."),
    ("--version", "Print the version and exit."),
    ("-h, --help", "Print this and exit."),
)


class SectionedCommand(click.Command):
    """A command whose --help has upstream's named sections."""

    def __init__(self, *args: object, types: Sequence[type[Controller]], **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type] # passed through as they came
        self.types = types

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write("\n".join(help_lines(self.types, shutil.get_terminal_size().columns)))
        formatter.write("\n")


def help_lines(types: Sequence[type[Controller]], width: int = 100) -> Iterator[str]:
    """The whole help text."""
    yield from (LONG, "", "Usage:", "  kcm manager [flags]", "")
    by_section: dict[str, list[Flag]] = {}
    for flag in all_flags(types):
        by_section.setdefault(flag.section, []).append(flag)
    for section, flags in by_section.items():
        yield f"{section[:1].upper()}{section[1:]} flags:"
        yield ""
        for flag in flags:
            yield from _entry(f"--{flag.name} {flag.kind}".rstrip(), _meaning(flag, types), width)
        yield ""
    yield "Global flags:"
    yield ""
    for name, meaning in GLOBAL:
        yield from _entry(name, meaning, width)


def _meaning(flag: Flag, types: Sequence[type[Controller]]) -> str:
    default = flag.print(flag.default)
    text = f"{flag.meaning} (default {default})" if default else flag.meaning
    if flag.name != "controllers":
        return text
    built = ", ".join(sorted(kind.name for kind in types))
    others = ", ".join(sorted(set(known_controllers(types)) - {kind.name for kind in types}))
    off = ", ".join(sorted(controllers_disabled_by_default(types)))
    return (
        f"{text}\nControllers of this kcm: {built}\nKnown, but not built yet or of a cloud "
        f"provider: {others}\nDisabled by default: {off}"
    )


def _entry(name: str, meaning: str, width: int) -> Iterator[str]:
    yield f"      {name}"
    for paragraph in meaning.splitlines():
        yield from textwrap.wrap(
            paragraph,
            max(width, 60),
            initial_indent=" " * 16,
            subsequent_indent=" " * 16,
            break_on_hyphens=False,
        )


def build_command(argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> click.Command:
    """The command for these arguments: `--controller-module` and `--config` among them decide
    which flags there are. Raises: ConfigurationError."""
    types = controller_types(_modules(argv, environ))
    params: list[click.Parameter] = [_option(flag) for flag in all_flags(types)]
    params += [
        click.Option(["--config"], metavar="FILE"),
        click.Option(["--stop-with-stdin"], is_flag=True),
        click.Option(["--version"], is_flag=True),
    ]
    return SectionedCommand(
        "kcm manager",
        types=types,
        params=params,
        callback=_main,
        context_settings={
            "help_option_names": ["-h", "--help"],
            # Upstream takes --leader_elect for --leader-elect.
            "token_normalize_func": lambda name: name.replace("_", "-"),
        },
    )


def _option(flag: Flag) -> click.Option:
    name = f"--{flag.name}"
    if flag.type is bool:
        return click.Option([name, flag.field_id], is_flag=False, flag_value="true", default=None)
    return click.Option([name, flag.field_id], multiple=flag.type is tuple, default=None)


def _modules(argv: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """`--controller-module`, as far as it can be known before the flags are."""
    given = _given(argv, "controller-module")
    if given:
        return tuple(part for text in given for part in text.split(",") if part)
    if environ.get("KCM_CONTROLLER_MODULE"):
        return tuple(part for part in environ["KCM_CONTROLLER_MODULE"].split(",") if part)
    path = (_given(argv, "config") or [environ.get(CONFIG_ENV, "")])[-1]
    generic = read_config(path).get("generic") if path else None
    found = generic.get("controllerModules") if isinstance(generic, Mapping) else None
    return tuple(str(part) for part in found) if isinstance(found, list) else ()


def _given(argv: Sequence[str], name: str) -> list[str]:
    found, wanted = [], f"--{name}"
    for position, argument in enumerate(argv):
        flag, equals, value = argument.partition("=")
        if flag.replace("_", "-") != wanted:
            continue
        if equals:
            found.append(value)
        elif position + 1 < len(argv):
            found.append(argv[position + 1])
    return found


def parse_flags(argv: Sequence[str]) -> dict[str, str]:
    """The flags among the arguments, as `ManagerOptions.load` takes them.

    Raises: ConfigurationError, click.ClickException; click's Exit for --help.
    """
    command = build_command(argv)
    assert isinstance(command, SectionedCommand)
    context = command.make_context("kcm manager", list(argv))
    return given_flags(context.params, all_flags(command.types))


def given_flags(params: Mapping[str, object], flags: Sequence[Flag]) -> dict[str, str]:
    """The flags that were on the command line, as text."""
    found = {}
    for flag in flags:
        value = params.get(flag.field_id)
        if isinstance(value, tuple):
            if value:
                found[flag.name] = ",".join(str(part) for part in value)
        elif value is not None:
            found[flag.name] = str(value)
    if params.get("config") is not None:
        found["config"] = str(params["config"])
    return found


def _main(stop_with_stdin: bool, version: bool, **params: object) -> None:
    if version:
        click.echo(f"kcm v{__version__}")
        return
    command = click.get_current_context().command
    assert isinstance(command, SectionedCommand)
    options = ManagerOptions.load(given_flags(params, all_flags(command.types)))
    settings = Settings()
    configure(settings.log_format, settings.log_level)
    log_flags(options)
    run = Run(build_context(settings, options, kind="manager"))
    _on_signals(run.ask_to_stop)
    if stop_with_stdin:
        _on_closed_stdin(run.ask_to_stop)
    click.get_current_context().exit(run.run())


def log_flags(options: ManagerOptions) -> None:
    """Log every flag with its effective value and where that comes from. None is a secret:
    passwords and tokens are named by file."""
    for flag, value in options.values():
        source = options.sources.get(flag.name, "default")
        log.info(f'FLAG: --{flag.name}="{flag.print(value)}"', source=source)


def _on_signals(stop: Callable[[], None]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop())


def _on_closed_stdin(stop: Callable[[], None]) -> None:
    def wait() -> None:
        # Not sys.stdin: a thread that holds its lock aborts the interpreter's end.
        while os.read(0, 4096):
            pass
        stop()

    threading.Thread(target=wait, name="kcm-stdin", daemon=True).start()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        command = build_command(arguments)
        result = command.main(arguments, prog_name="kcm manager", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (errors.ConfigurationError, errors.StoreUnavailable) as error:
        click.echo(f"Error: {error}", err=True)
        return 1
    return result if isinstance(result, int) else 0
