"""Follows the changes of kinds: lists each once, then reads what has changed since.

Guarantees: a kind whose changes are no longer all there (410, new epoch, deleted log) is listed
again before more of it is read. The changes of one kind arrive in order. While the store is
unavailable, positions are kept. A kind whose target fails is listed again, and costs no other kind
a change. An entry that cannot be read costs itself only; see
`kcm.store.damage.decode_change`, which logs it once.

Does not guarantee that every change arrives: a list skips those in between. For one thread.

Source: client-go `tools/cache/reflector.go` (ListAndWatch), Kubernetes 1.33.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import structlog

from kcm.api.scheme import Resource
from kcm.errors import EpochChanged, KcmError
from kcm.informers.source import ChangeSource, WatchEntry

log = structlog.get_logger("kcm.informers")


class ChangeTarget(Protocol):
    """What a follower keeps up to date."""

    def list_kinds(self, kinds: Sequence[Resource]) -> Mapping[Resource, int]:
        """Reads all objects of these kinds, and returns the resourceVersions from which to read on.

        It may list other kinds of the follower as well. Raises what the store raises.
        """
        ...

    def apply_changes(
        self, kind: Resource, changes: Sequence[WatchEntry], resource_version: int
    ) -> None:
        """Takes the changes of one kind, which is complete up to `resource_version` then."""
        ...


class Follower:
    """Keeps `target` up to date with the kinds that `follow` names."""

    def __init__(
        self, source: ChangeSource, target: ChangeTarget, kinds: Iterable[Resource] = ()
    ) -> None:
        self._source = source
        self._target = target
        self._kinds: dict[Resource, None] = dict.fromkeys(kinds)
        self._positions: dict[Resource, int] = {}

    @property
    def positions(self) -> Mapping[Resource, int]:
        """The resourceVersions up to which each kind was read. Kinds to be listed are missing."""
        return self._positions

    @property
    def is_listing(self) -> bool:
        """Whether the next read lists a kind first."""
        return len(self._positions) < len(self._kinds)

    def follow(self, kinds: Iterable[Resource]) -> None:
        """Follows these kinds from the next read on, and no others."""
        self._kinds = dict.fromkeys(kinds)
        self._positions = {kind: at for kind, at in self._positions.items() if kind in self._kinds}

    def list_again(self) -> None:
        """Lists all kinds again before the next read."""
        self._positions = {}

    def read(self, patience: float) -> int:
        """Lists what is to be listed, then reads once, after a wait of up to `patience` seconds.

        Returns the number of changes. Raises what the source and the target raise.
        """
        self._list_missing()
        try:
            changes = self._source.read_changes(self._positions, round(patience * 1000))
        except EpochChanged:
            self.list_again()
            raise
        by_kind: defaultdict[Resource, list[WatchEntry]] = defaultdict(list)
        for change in changes.entries:
            by_kind[change.resource].append(change)
        for kind in changes.gone:
            log.info("A kind is listed again", kind=kind.name)
            self._positions.pop(kind, None)
        for kind, position in changes.positions.items():
            if kind in changes.gone:
                continue
            if kind in by_kind or position != self._positions[kind]:
                self._apply(kind, by_kind[kind], position)
        if changes.gone:
            self._list_missing()
        return len(changes.entries)

    def _apply(self, kind: Resource, changes: Sequence[WatchEntry], position: int) -> None:
        try:
            self._target.apply_changes(kind, changes, position)
        except KcmError:  # of a store: the same changes are read again
            raise
        except Exception:  # the same changes would fail again
            self._positions.pop(kind)
            raise
        self._positions[kind] = position

    def _list_missing(self) -> None:
        if missing := [kind for kind in self._kinds if kind not in self._positions]:
            self._positions |= self._target.list_kinds(missing)
