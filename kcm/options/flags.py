"""Flags, computed from the option groups and from each controller's options.

Guarantees: every option has one flag, one environment variable (`KCM_` and the flag in capitals)
and one field of the configuration file. Two options with the same flag are an error; a controller
that needs the option of another one has a `shared_option`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from kcm import errors
from kcm.api import codec
from kcm.apimachinery.durations import format_duration, parse_duration
from kcm.apimachinery.suggestions import suggest
from kcm.options.groups import (
    CloudOptions,
    GenericOptions,
    Group,
    LeaderElectionOptions,
    ServingOptions,
)
from kcm.options.names import BY_NAME, CONFIG_FIELDS, KNOWN, camel_case
from kcm.reconcile.contract import Controller, shared_with
from kcm.settings import Settings

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})  # as Go's strconv.ParseBool

# The title, the attribute of ManagerOptions, the group, and the path in the configuration file.
BUILT_IN: tuple[tuple[str, str, type[Group], tuple[str, ...]], ...] = (
    ("generic", "generic", GenericOptions, ("generic",)),
    ("leader election", "leader_election", LeaderElectionOptions, ("generic", "leaderElection")),
    ("secure serving", "serving", ServingOptions, ("serving",)),
    ("cloud provider", "cloud", CloudOptions, ("kubeCloudShared",)),
)


def env_name(flag: str) -> str:
    """Returns the environment variable that stands for a flag."""
    return "KCM_" + flag.upper().replace("-", "_")


@dataclass(frozen=True)
class Flag:
    """One option: its flag, its environment variable and its field in the configuration file."""

    name: str  # such as "leader-elect-lease-duration"
    section: str  # the heading in --help
    group: str  # the attribute of ManagerOptions, or a controller's name
    field: str  # the field of the group's model
    type: Any  # bool, int, float, str, timedelta or tuple (of str)
    default: Any
    meaning: str
    path: tuple[str, ...]  # the path in the configuration file

    @property
    def env(self) -> str:
        """The name of its environment variable."""
        return env_name(self.name)

    @property
    def field_id(self) -> str:
        """Its name as a Python identifier."""
        return self.name.replace("-", "_")

    def parse(self, text: str) -> Any:
        """Returns the value of a text. Raises ValueError."""
        if self.type is bool:
            return _parse_bool(text)
        if self.type is tuple:
            return tuple(part.strip() for part in text.split(",") if part.strip())
        if self.type is timedelta:
            return parse_duration(text)
        if self.type in (int, float):
            return _parse_number(self.type, text)
        return text

    def from_config(self, value: Any) -> Any:
        """Returns the value of a field in the configuration file. Raises ValueError."""
        if self.type is tuple:
            if isinstance(value, list) and all(isinstance(part, str) for part in value):
                return tuple(value)
            raise ValueError("must be a list of strings")
        if self.type is timedelta and isinstance(value, str):
            return parse_duration(value)
        wanted, article = _CONFIG_TYPES.get(self.type, (str, "a string"))
        if not isinstance(value, wanted) or (isinstance(value, bool) and self.type is not bool):
            raise ValueError(f"must be {article}, not {value!r}")
        return value

    def format(self, value: Any) -> str:
        """Returns the text from which `parse` returns this value."""
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, timedelta):
            return format_duration(value)
        if isinstance(value, (tuple, list)):
            return ",".join(str(part) for part in value)
        return "" if value is None else str(value)

    @property
    def kind(self) -> str:
        """The name of the type in --help, empty for switches."""
        return _KINDS.get(self.type, "string")


_CONFIG_TYPES: dict[Any, tuple[Any, str]] = {
    bool: (bool, "true or false"),
    int: (int, "a whole number"),
    float: ((int, float), "a number"),
    timedelta: (str, 'a duration in quotes like "40s"'),
}
_KINDS = {bool: "", int: "int", float: "float", timedelta: "duration", tuple: "strings"}


def _parse_bool(text: str) -> bool:
    if text in _TRUE | _FALSE:
        return text in _TRUE
    raise ValueError(f'must be true or false, not "{text}"')


def _parse_number(kind: Any, text: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise ValueError(f'must be {what}, not "{text}"') from None


def built_in_flags() -> tuple[Flag, ...]:
    """Returns the manager's own flags."""
    return tuple(
        flag
        for section, group, model, path in BUILT_IN
        for flag in _flags_of(model, section, group, path)
    )


def controller_flags(types: Sequence[type[Controller]]) -> Iterator[Flag]:
    """Yields the flags of the controllers' options, in sections named after the controllers."""
    for kind in types:
        yield from _flags_of(kind.options_type, kind.name, kind.name, (config_section(kind),))


def config_section(kind: type[Controller]) -> str:
    """Returns the name of the controller's section of the configuration file."""
    upstream = BY_NAME.get(kind.name)
    return (upstream.section if upstream else "") or camel_case(kind.name)


def all_flags(types: Sequence[type[Controller]]) -> tuple[Flag, ...]:
    """Returns all flags. Raises ConfigurationError when two options have the same flag."""
    return _all_flags(tuple(types))


@functools.lru_cache(maxsize=8)
def _all_flags(types: tuple[type[Controller], ...]) -> tuple[Flag, ...]:
    by_name: dict[str, Flag] = {}
    taken = {"config": "global", **{_flag_of_setting(name): "settings" for name in _SETTINGS}}
    for flag in (*built_in_flags(), *controller_flags(types)):
        other = taken.get(flag.name)
        if other is not None:
            raise errors.ConfigurationError(
                f"--{flag.name} is a flag of {other} and of {flag.section}: rename the option"
            )
        by_name[flag.name], taken[flag.name] = flag, flag.section
    return tuple(by_name.values())


def _flags_of(
    model: type[BaseModel], section: str, group: str, path: tuple[str, ...]
) -> Iterator[Flag]:
    for name, info in model.model_fields.items():
        if shared_with(info):
            continue
        extra = info.json_schema_extra
        own = str(extra.get("flag", "")) if isinstance(extra, dict) else ""
        flag = own or name.replace("_", "-")
        field = CONFIG_FIELDS.get(flag, camel_case(name))
        yield Flag(
            name=flag,
            section=section,
            group=group,
            field=name,
            type=_plain_type(info),
            default=info.get_default(call_default_factory=True),
            meaning=info.description or "",
            path=(*path, field),
        )


def shared_flags(model: type[BaseModel]) -> Mapping[str, str]:
    """Returns the flags of other controllers whose values the fields of a group have, by field."""
    fields = model.model_fields.items()
    return {name: name.replace("_", "-") for name, info in fields if shared_with(info)}


def _plain_type(info: FieldInfo) -> Any:
    annotation = info.annotation
    options = [arg for arg in get_args(annotation) if arg is not type(None)]
    origin = get_origin(annotation)
    if origin in (tuple, list, set, frozenset):
        return tuple
    if origin is not None and len(options) == 1:
        annotation = options[0]
    if annotation in (bool, int, float, timedelta):
        return annotation
    return Path if annotation is Path else str


_SETTINGS = tuple(Settings.model_fields)


def _flag_of_setting(name: str) -> str:
    return name.replace("_", "-")


# --- The configuration file: a KubeControllerManagerConfiguration with the fields that kcm has.
#
# Upstream has the type but no flag for a file; `--config` is kcm's own. Errors have the file and
# the field, and all of them are reported at once.


API_VERSION = "kubecontrollermanager.config.k8s.io/v1alpha1"
KIND = "KubeControllerManagerConfiguration"


def read_config(path: str) -> Mapping[str, Any]:
    """Returns the fields of the one document in the file. Raises ConfigurationError."""
    try:
        text = Path(path).read_text("utf-8")
        documents = codec.load_yaml_documents(text, path)
    except (OSError, UnicodeError) as error:
        raise errors.ConfigurationError(f"--config {path}: {error}") from error
    except errors.ApiError as error:
        raise errors.ConfigurationError(f"--config: {error}") from error
    if len(documents) != 1:
        raise errors.ConfigurationError(f"--config {path}: one document expected")
    kind = (documents[0].get("apiVersion"), documents[0].get("kind"))
    if kind != (API_VERSION, KIND):
        raise errors.ConfigurationError(
            f"--config {path}: must have apiVersion: {API_VERSION} and kind: {KIND}, "
            f"not {kind[0]} and {kind[1]}"
        )
    return {name: part for name, part in documents[0].items() if name not in ("apiVersion", "kind")}


def read_values(document: Mapping[str, Any], flags: Sequence[Flag], path: str) -> dict[str, Any]:
    """Returns the document's values by flag name.

    Raises ConfigurationError with all unknown fields and all values of a wrong type.
    """
    places = {place: flag for flag in flags for place in _places(flag)}
    by_flag: dict[str, Any] = {}
    faults: list[str] = []
    for place, value in _leaves(document, (), {place[:-1] for place in places}):
        flag = places.get(place)
        try:
            if flag is None:
                raise ValueError(_unknown(place, list(places)))
            by_flag[flag.name] = flag.from_config(value)
        except ValueError as error:
            faults.append(f"{path}: {'.'.join(place)}: {error}")
    if faults:
        raise errors.ConfigurationError("--config: " + "\n".join(faults))
    return by_flag


def _places(flag: Flag) -> set[tuple[str, ...]]:
    """Returns the paths of a flag's field: upstream's, and kcm's if it differs."""
    return {flag.path, (*flag.path[:-1], camel_case(flag.field))}


def _leaves(
    part: Mapping[str, Any], at: tuple[str, ...], sections: set[tuple[str, ...]]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in part.items():
        place = (*at, str(name))
        if place in sections and (value is None or isinstance(value, Mapping)):
            yield from _leaves(value or {}, place, sections)
        else:
            yield place, value


def _unknown(place: tuple[str, ...], names: Sequence[tuple[str, ...]]) -> str:
    theirs = {controller.section for controller in KNOWN if controller.section}
    sections = {other[0] for other in names}
    if place[0] in theirs - sections:
        return "a section of Kubernetes for a controller that kcm does not have yet"
    if len(place) == 1 and place[0] in sections:
        return "must be a mapping of fields"
    return "unknown field" + suggest(".".join(place), map(".".join, names), most=1)


def as_document(flags: Sequence[Flag], current: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the configuration document with the values in `current`, by flag name, for
    /configz.
    """
    document: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND}
    for flag in flags:
        part = document
        for name in flag.path[:-1]:
            part = part.setdefault(name, {})
        value = current[flag.name]
        plain = isinstance(value, (bool, int, float)) or value is None
        part[flag.path[-1]] = (
            list(value) if flag.type is tuple else value if plain else flag.format(value)
        )
    return document
