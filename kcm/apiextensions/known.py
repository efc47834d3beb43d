"""The custom kinds that this process serves: registers them in the scheme by their definitions.

A process serves one store, so they are kept once for each process.
"""

from __future__ import annotations

import gc
import hashlib
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass

import structlog

from kcm.api import codec, scheme
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.apiextensions.kinds import is_served, resources_of

log = structlog.get_logger("kcm.api")

# Garbage is collected after so many bytes of definitions were removed; that frees some 40 MB.
_DISCARDED = 8_000_000
_SHARE = 4  # collections take at most 1/_SHARE of the process's CPU time


@dataclass(frozen=True)
class _Source:
    """A digest of the definition from which resources were built."""

    digest: bytes
    size: int  # bytes of JSON


class _Remains:
    """Frees the memory of the models of custom kinds that were replaced or removed.

    A class refers to itself, so only the garbage collector can free it and its schema. Full
    collections happen rarely by themselves (see kcm.interpreter).
    """

    def __init__(self) -> None:
        self._bytes = 0
        self._not_before = 0.0  # seconds of CPU

    def add(self, size: int) -> None:
        """Counts the bytes of a removed definition, and collects garbage when there are many."""
        self._bytes += size
        began = time.process_time()
        if self._bytes < _DISCARDED or began < self._not_before:
            return
        self._bytes = 0
        gc.collect()
        ended = time.process_time()
        self._not_before = ended + _SHARE * (ended - began)


_REMAINS = _Remains()
_LOCK = threading.Lock()
_KNOWN: dict[str, _Source] = {}


def learn(definition: CustomResourceDefinition) -> bool:
    """Registers the kind of a definition, or removes it if it is no longer served.

    Returns whether that changed the scheme.
    """
    name = definition.name
    if not is_served(definition):
        return forget(name)
    with _LOCK:
        source = _source(definition)
        if _KNOWN.get(name) == source:
            return False
        try:
            scheme.replace_versions(name, resources_of(definition))
        except ValueError as error:
            log.warning("A custom kind is not served", definition=name, error=str(error))
            return False
        before, _KNOWN[name] = _KNOWN.get(name), source
        if before is not None:
            _REMAINS.add(before.size)
        return True


def _source(definition: CustomResourceDefinition) -> _Source:
    accepted = definition.status.accepted_names
    texts = codec.encode(definition.spec) + (codec.encode(accepted) if accepted else b"")
    return _Source(hashlib.sha256(texts).digest(), len(texts))


def forget(name: str) -> bool:
    """Removes the kind of a definition by its name. Returns whether it was registered."""
    with _LOCK:
        before = _KNOWN.pop(name, None)
        if before is None:
            return False
        scheme.replace_versions(name)
        _REMAINS.add(before.size)
        return True


def learn_all(definitions: Iterable[CustomResourceDefinition]) -> None:
    """Registers the kinds of these definitions, and removes all other custom kinds."""
    by_name = {definition.name: definition for definition in definitions}
    for name in _KNOWN.keys() - by_name.keys():
        forget(name)
    for definition in by_name.values():
        learn(definition)


def names() -> frozenset[str]:
    """Returns the names of the custom kinds that are registered."""
    return frozenset(_KNOWN)
