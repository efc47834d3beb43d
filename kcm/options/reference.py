"""Tables of all settings and options, for `docs/configuration.md`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kcm.options.flags import Flag, all_flags
from kcm.reconcile.contract import Controller
from kcm.settings import Settings


@dataclass(frozen=True)
class Row:
    """One setting or option."""

    flag: str  # empty for settings, which have no flag
    variable: str
    field: str  # the field of the configuration file, empty for settings
    kind: str
    default: str
    meaning: str


@dataclass(frozen=True)
class Section:
    """The rows under one heading."""

    title: str
    rows: tuple[Row, ...]


def sections(types: Sequence[type[Controller]]) -> tuple[Section, ...]:
    """Returns the options: the manager's own, then one section per controller that has options."""
    grouped: dict[str, list[Row]] = {}
    for flag in all_flags(types):
        grouped.setdefault(flag.section, []).append(_row(flag))
    return tuple(Section(title, tuple(rows)) for title, rows in grouped.items())


def reference(types: Sequence[type[Controller]]) -> tuple[Section, ...]:
    """Returns the settings of every process as a section, then the sections of the options."""
    rows = tuple(
        Row(
            flag="",
            variable=f"KCM_{name.upper()}",
            field="",
            kind=getattr(info.annotation, "__name__", "string"),
            default="" if info.is_required() or info.default_factory else str(info.default),
            meaning=info.description or "",
        )
        for name, info in Settings.model_fields.items()
    )
    return (Section("settings", rows), *sections(types))


def _row(flag: Flag) -> Row:
    return Row(
        flag=f"--{flag.name}",
        variable=flag.env,
        field=".".join(flag.path),
        kind=flag.kind or "bool",
        default=flag.format(flag.default),
        meaning=flag.meaning,
    )
