"""The options of the controller manager.

A value is that of the flag, else of the environment, else of the configuration file, else the
default. Every process reads the same options. The manager takes flags; workers and beat read
environment and file with `ManagerOptions.load()`.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from kcm import errors
from kcm.options.flags import (
    BUILT_IN,
    Flag,
    all_flags,
    as_document,
    built_in_flags,
    read_config,
    read_values,
    shared_flags,
)
from kcm.options.groups import (
    CloudOptions,
    GenericOptions,
    LeaderElectionOptions,
    ServingOptions,
)
from kcm.options.names import BY_NAME, KNOWN
from kcm.reconcile.contract import Controller, Options
from kcm.registry import controller_types

# --- Decides which controllers `--controllers` enables, by upstream's rules.
#
# Source: IsControllerEnabled in staging/src/k8s.io/controller-manager/app/helper.go,
# options/generic.go (names, aliases, unknown ones), Kubernetes 1.33.


Types = Sequence[type[Controller]]


def known_controllers(types: Types) -> tuple[str, ...]:
    """Returns the names of all controllers: upstream's, and those of a user's own controllers."""
    own = [kind.name for kind in types if kind.name not in BY_NAME]
    return (*BY_NAME, *own)


def controller_aliases(types: Types) -> Mapping[str, str]:
    """Returns the controllers' names by their older and short names."""
    aliases = {upstream.alias: upstream.name for upstream in KNOWN if upstream.alias}
    aliases.update((kind.short_name, kind.name) for kind in types if kind.short_name != kind.name)
    return aliases


def controllers_disabled_by_default(types: Types) -> frozenset[str]:
    """Returns the names of the controllers that `*` does not enable."""
    theirs = {upstream.name for upstream in KNOWN if upstream.disabled_by_default}
    return frozenset(theirs | {kind.name for kind in types if kind.disabled_by_default})


def is_controller_enabled(
    name: str, disabled_by_default: Collection[str], controllers: Sequence[str]
) -> bool:
    """Reports whether the list enables `name`.

    The first entry with the name decides, then `*`; otherwise it is disabled.
    """
    for entry in controllers:
        if entry == name:
            return True
        if entry == f"-{name}":
            return False
    return "*" in controllers and name not in disabled_by_default


def resolve_names(controllers: Sequence[str], types: Types) -> tuple[str, ...]:
    """Returns the list with names in place of aliases.

    Raises ConfigurationError for unknown names, and for a controller of upstream that is enabled by
    name but not part of kcm.
    """
    aliases, names_of_all = controller_aliases(types), known_controllers(types)
    built = {kind.name for kind in types}
    resolved, faults = [], []
    for entry in controllers or ("*",):
        sign, name = ("-", entry[1:]) if entry.startswith("-") else ("", entry)
        name = aliases.get(name, name)
        name = f"{name}-controller" if f"{name}-controller" in names_of_all else name
        resolved.append(sign + name)
        if name == "*":  # upstream refuses `-*`, and has no way to enable none
            continue
        if name not in names_of_all:
            faults.append(f'"{name}" is not in the list of known controllers')
        elif not sign and name not in built and not BY_NAME[name].cloud:
            faults.append(f'"{name}" is a controller of Kubernetes that kcm does not have yet')
    if faults:
        raise errors.ConfigurationError(f"--controllers: {'; '.join(faults)}\n{_listing(types)}")
    return tuple(resolved)


def _listing(types: Types) -> str:
    names = sorted(f"{kind.name} ({kind.short_name})" for kind in types)
    return f"controllers of this kcm: {', '.join(names) or '(none)'}"


def name_lease(controllers: Sequence[str]) -> str:
    """Returns the name of the Lease on another API server for the controllers that it is about."""
    if "*" in controllers:
        return "kube-controller-manager"
    text = ",".join(sorted(controllers))
    return f"kcm-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


CONFIG_ENV = "KCM_CONFIG"


@dataclass(frozen=True)
class ManagerOptions:
    """All options of one process."""

    generic: GenericOptions = field(default_factory=GenericOptions)
    leader_election: LeaderElectionOptions = field(default_factory=LeaderElectionOptions)
    serving: ServingOptions = field(default_factory=ServingOptions)
    cloud: CloudOptions = field(default_factory=CloudOptions)
    # keyed by the controller's name
    controllers: Mapping[str, Options] = field(default_factory=dict)
    # by flag, the source of its value: flag, environment or config; without defaults
    sources: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(
        cls, flags: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None
    ) -> ManagerOptions:
        """Reads flags (texts by name), environment and configuration file.

        Raises ConfigurationError, which names the source of the wrong value.
        """
        return _Loader(flags or {}, os.environ if environ is None else environ).load()

    def types(self) -> tuple[type[Controller], ...]:
        """Returns the classes of all controllers, enabled or not. Raises ConfigurationError."""
        return controller_types(self.generic.controller_modules)

    def of(self, kind: type[Controller]) -> Options:
        """Returns a controller's options."""
        return self.controllers.get(kind.name) or kind.options_type()

    def resync_period(self) -> float:
        """Returns a random resync period in seconds, so that caches are not all resynced at the
        same time.
        """
        return self.generic.min_resync_period.total_seconds() * (1 + random.random())

    def values(self) -> Iterator[tuple[Flag, Any]]:
        """Yields all flags with their values."""
        types = self.types()
        own: dict[str, BaseModel] = {kind.name: self.of(kind) for kind in types}
        for flag in all_flags(types):
            group = own.get(flag.group) or getattr(self, flag.group)
            yield flag, getattr(group, flag.field)

    def to_environment(self) -> dict[str, str]:
        """Returns environment variables that give another process the same options.

        They override what that process inherits.
        """
        variables = {
            flag.env: flag.format(_make_absolute(flag, value)) for flag, value in self.values()
        }
        return {CONFIG_ENV: "", **variables}

    def to_config(self) -> dict[str, Any]:
        """Returns the content of a configuration file that gives the same options."""
        pairs = list(self.values())
        return as_document([flag for flag, _ in pairs], {flag.name: value for flag, value in pairs})


def list_controller_modules(
    flags: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[str, ...]:
    """Returns the modules of users' controllers. Raises ConfigurationError.

    They decide which flags exist. So of `flags`, only those of the modules and of the file are
    read.
    """
    return _Loader(flags, environ).list_modules()


def _make_absolute(flag: Flag, value: Any) -> Any:
    """Returns the value with absolute paths, which are valid in any working directory."""
    if flag.name.endswith("-file"):
        return str(Path(value).absolute()) if value else value
    if flag.name == "controller-module":
        return [str(Path(part).absolute()) if part.endswith(".py") else part for part in value]
    return value


class _Loader:
    """Reads the options of one process."""

    def __init__(self, flags: Mapping[str, str], environ: Mapping[str, str]) -> None:
        self._flags = flags
        self._environ = environ
        self._path = flags.get("config", environ.get(CONFIG_ENV, ""))
        self._document = read_config(self._path) if self._path else {}
        self._file: Mapping[str, Any] = {}
        self._sources: dict[str, str] = {}

    def load(self) -> ManagerOptions:
        types = controller_types(self.list_modules())
        flags = all_flags(types)
        self._refuse_unknown(flags)
        self._file = read_values(self._document, flags, self._path)
        texts = {flag.name: self._value(flag) for flag in flags}
        built_in: Any = {
            group: self._build(model, group, flags, texts) for _, group, model, _ in BUILT_IN
        }
        controllers = {
            kind.name: self._build(kind.options_type, kind.name, flags, texts) for kind in types
        }
        built_in["leader_election"] = self._elect(built_in["generic"], built_in["leader_election"])
        options = ManagerOptions(**built_in, controllers=controllers, sources=self._sources)
        resolve_names(options.generic.controllers, types)
        return options

    def _elect(
        self, generic: GenericOptions, election: LeaderElectionOptions
    ) -> LeaderElectionOptions:
        """Returns the options of the election, with the defaults for another API server.

        There, a manager of the cluster's own may run: the Lease is its Lease if all controllers
        are enabled, else one of this set of controllers.
        """
        defaults = {
            "leader-elect": ("leader_elect", True),
            "leader-elect-resource-name": ("resource_name", name_lease(generic.controllers)),
        }
        if not generic.kubeconfig:
            return election
        return election.model_copy(
            update=dict(value for flag, value in defaults.items() if flag not in self._sources)
        )

    def list_modules(self) -> tuple[str, ...]:
        """Returns the modules of users' controllers, whose options add flags."""
        flag = next(flag for flag in built_in_flags() if flag.name == "controller-module")
        generic = self._document.get("generic")
        inner = generic.get("controllerModules") if isinstance(generic, Mapping) else None
        if inner is not None:
            self._file = {flag.name: tuple(inner) if isinstance(inner, list) else ()}
        return tuple(self._value(flag))

    def _refuse_unknown(self, flags: Sequence[Flag]) -> None:
        strange = sorted(self._flags.keys() - {flag.name for flag in flags} - {"config"})
        if strange:
            raise errors.ConfigurationError(f"unknown flag: --{strange[0]}")

    def _value(self, flag: Flag) -> Any:
        if flag.name in self._flags:
            return self._parse(flag, self._flags[flag.name], f"--{flag.name}", "flag")
        if self._environ.get(flag.env):
            return self._parse(flag, self._environ[flag.env], flag.env, "environment")
        if flag.name in self._file:
            self._sources[flag.name] = "config"
            return self._file[flag.name]
        return flag.default

    def _parse(self, flag: Flag, text: str, where: str, source: str) -> Any:
        self._sources[flag.name] = source
        try:
            return flag.parse(text)
        except ValueError as error:
            raise errors.ConfigurationError(f"{where}: {error}") from error

    def _build(
        self, model: type[Any], group: str, flags: Sequence[Flag], given: Mapping[str, Any]
    ) -> Any:
        by_name = {flag.name: flag for flag in flags}
        own = {flag.field: flag for flag in flags if flag.group == group}
        own |= {field: by_name[name] for field, name in shared_flags(model).items()}
        set_ = {name: given[flag.name] for name, flag in own.items() if flag.name in self._sources}
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
        return f"{where}: {message}, not {flag.format(fault['input'])!r}"
