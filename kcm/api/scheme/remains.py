"""Frees the memory of the classes of custom kinds that were replaced or removed."""

from __future__ import annotations

import gc
import time

# Garbage is collected after so many bytes of definitions were removed; that frees some 40 MB.
_DISCARDED = 8_000_000
_SHARE = 4  # collections take at most 1/_SHARE of the process's CPU time


class Remains:
    """Counts what the classes of a scheme leave, and collects it when it is much.

    A class refers to itself, so only the garbage collector can free it and its schema. Full
    collections happen rarely by themselves (see kcm.interpreter).
    """

    def __init__(self, discarded: int = _DISCARDED) -> None:
        """`discarded` is the number of bytes of removed definitions after which it collects."""
        self._discarded = discarded
        self._bytes = 0
        self._not_before = 0.0  # seconds of CPU

    def add(self, size: int) -> None:
        """Counts the bytes of a removed definition, and collects garbage when there are many."""
        self._bytes += size
        began = time.process_time()
        if self._bytes < self._discarded or began < self._not_before:
            return
        self._bytes = 0
        gc.collect()
        ended = time.process_time()
        self._not_before = ended + _SHARE * (ended - began)
