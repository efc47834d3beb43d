"""How often the objects of a control plane changed, as its informers read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from kcm.informers.factory import SharedInformerFactory
from kcm.store.watch import WatchEntry
from kcm.testing.control_plane.outside import HEARTBEATS

_BY_NODES = frozenset({"nodes", "pods"}) | HEARTBEATS  # what heartbeats and reports write


class Changes:
    """Counts the changes of each object and kind."""

    def __init__(self, informers: SharedInformerFactory) -> None:
        self._heartbeats = HEARTBEATS
        self._followers: list[tuple[frozenset[str], Callable[[], None]]] = []
        self.of_objects: Counter[str] = Counter()  # by kind and key
        self.of_kinds: Counter[str] = Counter()  # without heartbeats
        informers.on_read(self._count)

    @property
    def count(self) -> int:
        """How many objects changed, without heartbeats."""
        return self.of_kinds.total()

    def call_on(self, kinds: frozenset[str], call: Callable[[], None]) -> None:
        """Calls a function, at the end of a read, for each change of one of these kinds."""
        self._followers.append((kinds, call))

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Takes what nodes write within the block for heartbeats."""
        self._heartbeats = _BY_NODES
        try:
            yield
        finally:
            self._heartbeats = HEARTBEATS

    def _count(self, entries: Sequence[WatchEntry]) -> None:
        for entry in entries:
            kind = entry.resource.name
            if entry.type == "BOOKMARK":
                continue
            self.of_objects[f"{kind} {entry.key}"] += 1
            if kind not in self._heartbeats:
                self.of_kinds[kind] += 1
            for kinds, call in self._followers:
                if kind in kinds:
                    call()
