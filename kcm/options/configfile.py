"""The configuration file: a KubeControllerManagerConfiguration with the fields that kcm has.

Upstream has the type but no flag for a file; `--config` is kcm's own. Errors have the file and the
field, and all of them are reported at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kcm import errors
from kcm.api import codec
from kcm.apimachinery.suggestions import suggest
from kcm.options.flags import Flag
from kcm.options.names import KNOWN, camel_case

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


def values(document: Mapping[str, Any], flags: Sequence[Flag], path: str) -> dict[str, Any]:
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


def _unknown(place: tuple[str, ...], known: Sequence[tuple[str, ...]]) -> str:
    theirs = {controller.section for controller in KNOWN if controller.section}
    sections = {other[0] for other in known}
    if place[0] in theirs - sections:
        return "a section of Kubernetes for a controller that kcm does not have yet"
    if len(place) == 1 and place[0] in sections:
        return "must be a mapping of fields"
    return "unknown field" + suggest(".".join(place), map(".".join, known), most=1)


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
