"""The manager's command line: all flags in sections, computed from the registry.

`kcm manager` uses it to run, and `kcm up` to parse the flags that it passes on. Source:
NewControllerManagerCommand in cmd/kube-controller-manager/app/controllermanager.go, Kubernetes
1.33.
"""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence

import click

from kcm.options.flags import Flag, all_flags
from kcm.options.manager import (
    controllers_disabled_by_default,
    known_controllers,
    list_controller_modules,
)
from kcm.reconcile.contract import Controller
from kcm.registry import controller_types

LONG = """\
The kcm controller manager starts the control loops of Kubernetes that this kcm has: it turns
changes of objects into keys of the controllers' work queues, which Celery workers process. Flags
take precedence over environment variables (KCM_ and the flag in capitals), these over --config,
and that over the defaults."""
GLOBAL = (
    ("--config FILE", "A KubeControllerManagerConfiguration file. (KCM_CONFIG; kcm's own.)"),
    ("--stop-with-stdin", "Stop when standard input is closed, so as not to outlive a parent."),
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
    """Yields the lines of the help text, wrapped to `width` columns."""
    yield from (LONG, "", "Usage:", "  kcm manager [flags]", "")
    by_section: dict[str, list[Flag]] = {}
    for flag in all_flags(types):
        by_section.setdefault(flag.section, []).append(flag)
    for section, flags in by_section.items():
        yield f"{section[:1].upper()}{section[1:]} flags:"
        yield ""
        for flag in flags:
            yield from _entry(f"--{flag.name} {flag.kind}".rstrip(), _describe(flag, types), width)
        yield ""
    yield "Global flags:"
    yield ""
    for name, meaning in GLOBAL:
        yield from _entry(name, meaning, width)


def _describe(flag: Flag, types: Sequence[type[Controller]]) -> str:
    default = flag.format(flag.default)
    text = f"{flag.meaning} (default {default})" if default else flag.meaning
    if flag.name != "controllers":
        return text
    built = ", ".join(sorted(kind.name for kind in types))
    others = ", ".join(sorted(set(known_controllers(types)) - {kind.name for kind in types}))
    off = ", ".join(sorted(controllers_disabled_by_default(types)))
    return (
        f"{text}\nControllers of this kcm: {built}\nKnown, but not built: "
        f"{others}\nDisabled by default: {off}"
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


def build_command(
    argv: Sequence[str],
    run: Callable[..., None] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> SectionedCommand:
    """Returns the command for these arguments, which calls `run` with its parameters.

    `--controller-module` and `--config` among the arguments decide which flags exist. Raises
    ConfigurationError.
    """
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
        callback=run,
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
    """Returns the modules of users' controllers from arguments that cannot be parsed yet."""
    flags: dict[str, str] = {}
    if modules := _list_given(argv, "controller-module"):
        flags["controller-module"] = ",".join(modules)
    if configs := _list_given(argv, "config"):
        flags["config"] = configs[-1]
    return list_controller_modules(flags, environ)


def _list_given(argv: Sequence[str], name: str) -> list[str]:
    values, wanted = [], f"--{name}"
    for position, argument in enumerate(argv):
        flag, equals, value = argument.partition("=")
        if flag.replace("_", "-") != wanted:
            continue
        if equals:
            values.append(value)
        elif position + 1 < len(argv):
            values.append(argv[position + 1])
    return values


def parse_flags(argv: Sequence[str]) -> dict[str, str]:
    """Returns the texts of the flags among the arguments by name, for `ManagerOptions.load`.

    Prints the help and raises click's Exit for --help. Raises ConfigurationError and
    click.ClickException.
    """
    command = build_command(argv)
    context = command.make_context("kcm manager", list(argv))
    return read_given_flags(context.params, all_flags(command.types))


def read_given_flags(params: Mapping[str, object], flags: Sequence[Flag]) -> dict[str, str]:
    """Returns the texts of the flags on the command line by name. `params` are click's
    parameters.
    """
    given: dict[str, str] = {}
    for flag in flags:
        value = params.get(flag.field_id)
        if isinstance(value, tuple):
            if value:
                given[flag.name] = ",".join(str(part) for part in value)
        elif value is not None:
            given[flag.name] = str(value)
    if params.get("config") is not None:
        given["config"] = str(params["config"])
    return given
