"""The controller manager's options: flag, else environment, else file, else default.

Every process reads the same ones: the manager takes flags, workers and beat
read environment and file (`ManagerOptions.load()`).
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from kcm import errors
from kcm.component import configfile
from kcm.component.enabling import canonical
from kcm.component.flags import BUILT_IN, Flag, all_flags, built_in_flags
from kcm.component.groups import GenericOptions, LeaderElectionOptions, ServingOptions
from kcm.reconcile.contract import Controller, Options
from kcm.registry import controller_types

CONFIG_ENV = "KCM_CONFIG"


@dataclass(frozen=True)
class ManagerOptions:
    """All options of one process."""

    generic: GenericOptions = field(default_factory=GenericOptions)
    leader_election: LeaderElectionOptions = field(default_factory=LeaderElectionOptions)
    serving: ServingOptions = field(default_factory=ServingOptions)
    controllers: Mapping[str, Options] = field(default_factory=dict)  # by the controller's name
    sources: Mapping[str, str] = field(default_factory=dict)  # by flag; default where not named

    @classmethod
    def load(
        cls, flags: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None
    ) -> ManagerOptions:
        """Read flags (name to text), environment and file.

        Raises: ConfigurationError, which says where the wrong value comes from.
        """
        return _Loader(flags or {}, os.environ if environ is None else environ).load()

    def types(self) -> tuple[type[Controller], ...]:
        """Every controller there is, enabled or not. Raises: ConfigurationError."""
        return controller_types(self.generic.controller_modules)

    def of(self, kind: type[Controller]) -> Options:
        """A controller's options."""
        return self.controllers.get(kind.name) or kind.options_type()

    def resync_period(self) -> float:
        """Seconds, drawn anew at each call, so that caches do not resync in step."""
        return self.generic.min_resync_period.total_seconds() * (1 + random.random())

    def values(self) -> Iterator[tuple[Flag, Any]]:
        """Every flag and its value."""
        types = self.types()
        own: dict[str, BaseModel] = {kind.name: self.of(kind) for kind in types}
        for flag in all_flags(types):
            group = own.get(flag.group) or getattr(self, flag.group)
            yield flag, getattr(group, flag.field)

    def to_environment(self) -> dict[str, str]:
        """Variables that reproduce these options in another process, whatever it inherits."""
        found = {flag.env: flag.print(_anchored(flag, value)) for flag, value in self.values()}
        return {CONFIG_ENV: "", **found}

    def to_config(self) -> dict[str, Any]:
        """The configuration file that reproduces these options."""
        pairs = list(self.values())
        return configfile.as_document(
            [flag for flag, _ in pairs], {flag.name: value for flag, value in pairs}
        )


def _anchored(flag: Flag, value: Any) -> Any:
    """Paths as they are from any working directory."""
    if flag.name.endswith("-file"):
        return str(Path(value).absolute()) if value else value
    if flag.name == "controller-module":
        return [str(Path(part).absolute()) if part.endswith(".py") else part for part in value]
    return value


class _Loader:
    def __init__(self, flags: Mapping[str, str], environ: Mapping[str, str]) -> None:
        self._flags = flags
        self._environ = environ
        self._path = flags.get("config", environ.get(CONFIG_ENV, ""))
        self._document = configfile.read_config(self._path) if self._path else {}
        self._file: Mapping[str, Any] = {}
        self._sources: dict[str, str] = {}

    def load(self) -> ManagerOptions:
        types = controller_types(self._modules())
        known = all_flags(types)
        self._refuse_unknown(known)
        self._file = configfile.values(self._document, known, self._path)
        found = {flag.name: self._value(flag) for flag in known}
        built_in: Any = {
            group: self._build(model, group, known, found) for _, group, model, _ in BUILT_IN
        }
        controllers = {
            kind.name: self._build(kind.options_type, kind.name, known, found) for kind in types
        }
        options = ManagerOptions(**built_in, controllers=controllers, sources=self._sources)
        canonical(options.generic.controllers, types)
        return options

    def _modules(self) -> tuple[str, ...]:
        """The controllers' modules, whose options decide what else may be said."""
        flag = next(flag for flag in built_in_flags() if flag.name == "controller-module")
        generic = self._document.get("generic")
        inner = generic.get("controllerModules") if isinstance(generic, Mapping) else None
        if inner is not None:
            self._file = {flag.name: tuple(inner) if isinstance(inner, list) else ()}
        return tuple(self._value(flag))

    def _refuse_unknown(self, known: Sequence[Flag]) -> None:
        strange = sorted(self._flags.keys() - {flag.name for flag in known} - {"config"})
        if strange:
            raise errors.ConfigurationError(f"unknown flag: --{strange[0]}")

    def _value(self, flag: Flag) -> Any:
        if flag.name in self._flags:
            return self._parsed(flag, self._flags[flag.name], f"--{flag.name}", "flag")
        if self._environ.get(flag.env):
            return self._parsed(flag, self._environ[flag.env], flag.env, "environment")
        if flag.name in self._file:
            self._sources[flag.name] = "config"
            return self._file[flag.name]
        return flag.default

    def _parsed(self, flag: Flag, text: str, where: str, source: str) -> Any:
        self._sources[flag.name] = source
        try:
            return flag.parse(text)
        except ValueError as error:
            raise errors.ConfigurationError(f"{where}: {error}") from error

    def _build(
        self, model: type[Any], group: str, known: Sequence[Flag], found: Mapping[str, Any]
    ) -> Any:
        own = {flag.field: flag for flag in known if flag.group == group}
        set_ = {name: found[flag.name] for name, flag in own.items() if flag.name in self._sources}
        try:
            return model.model_validate(set_)
        except ValidationError as error:
            faults = [self._fault(fault, own, group) for fault in error.errors()]
            raise errors.ConfigurationError("\n".join(faults)) from error

    def _fault(self, fault: Any, own: Mapping[str, Flag], group: str) -> str:
        message = str(fault["msg"]).removeprefix("Value error, ")
        flag = own.get(str(fault["loc"][0])) if fault["loc"] else None
        if flag is None:
            return f"{group.replace('_', ' ')}: {message}"
        source = self._sources.get(flag.name, "default")
        where = {
            "environment": flag.env,
            "config": f"{self._path}: {'.'.join(flag.path)}",
        }.get(source, f"--{flag.name}")
        return f"{where}: {message}, not {flag.print(fault['input'])!r}"
