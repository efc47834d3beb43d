"""The custom kinds that this process knows: it takes definitions and keeps resources in the scheme.

One process serves one store, so they are kept once per process.
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

# Bytes of definitions whose kinds went after which their memory is freed: some 40 MB.
_DISCARDED = 8_000_000
_SHARE = 4  # collections take at most one part in so many of the process's CPU time


@dataclass(frozen=True)
class _Source:
    """What a resource was made from."""

    digest: bytes
    size: int  # bytes of JSON


class _Remains:
    """Frees the memory of classes that no longer serve.

    A class refers to itself, so that only the collector frees it, and with it its schema. The
    collector's own rounds over all objects are far apart (see kcm.interpreter).
    """

    def __init__(self) -> None:
        self._bytes = 0
        self._not_before = 0.0  # seconds of CPU

    def add(self, size: int) -> None:
        """Counts what went, and collects when it is much."""
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
    """Serves a definition's kind as the definition says, or no longer.

    Returns whether that changed anything.
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
    """Stops serving a definition's kind, and returns whether it was served."""
    with _LOCK:
        before = _KNOWN.pop(name, None)
        if before is None:
            return False
        scheme.replace_versions(name)
        _REMAINS.add(before.size)
        return True


def learn_all(definitions: Iterable[CustomResourceDefinition]) -> None:
    """Serves exactly the kinds of these definitions."""
    by_name = {definition.name: definition for definition in definitions}
    for name in _KNOWN.keys() - by_name.keys():
        forget(name)
    for definition in by_name.values():
        learn(definition)


def names() -> frozenset[str]:
    """Returns the names of the custom kinds that are served."""
    return frozenset(_KNOWN)
