"""The custom kinds that this process knows: definitions in, resources of the scheme out.

One process serves one store, so they are kept once per process, in the scheme.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

import structlog

from kcm.api import codec, scheme
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.custom.kinds import is_served, resources_of

log = structlog.get_logger("kcm.api")

_LOCK = threading.Lock()
_KNOWN: dict[str, tuple[bytes, ...]] = {}  # what each resource was made from


def learn(definition: CustomResourceDefinition) -> bool:
    """Serve a definition's kind as it says, or no longer; whether that changed anything."""
    name = definition.name
    if not is_served(definition):
        return forget(name)
    with _LOCK:
        source = _source(definition)
        if _KNOWN.get(name) == source:
            return False
        try:
            scheme.replace_faces(name, resources_of(definition))
        except ValueError as error:
            log.warning("A custom kind is not served", definition=name, error=str(error))
            return False
        _KNOWN[name] = source
        return True


def _source(definition: CustomResourceDefinition) -> tuple[bytes, ...]:
    accepted = definition.status.accepted_names
    return (
        codec.encode(definition.spec),
        codec.encode(accepted) if accepted else b"",
    )


def forget(name: str) -> bool:
    """No longer serve a definition's kind; whether it was served."""
    with _LOCK:
        if _KNOWN.pop(name, None) is None:
            return False
        scheme.replace_faces(name)
        return True


def learn_all(definitions: Iterable[CustomResourceDefinition]) -> None:
    """Serve exactly the kinds of these definitions."""
    found = {definition.name: definition for definition in definitions}
    for name in _KNOWN.keys() - found.keys():
        forget(name)
    for definition in found.values():
        learn(definition)


def names() -> frozenset[str]:
    """The names of the custom kinds that are served."""
    return frozenset(_KNOWN)
