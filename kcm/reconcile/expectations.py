"""Expectations: the changes that a controller has written and not yet seen in its cache.

A controller whose cache lags behind its own writes would create the same pods again. So before each
write it stores what it expects to see, and does not sync the key until it has seen all of that or
the timeout is over. The local store does not need this, since a sync starts with fresh caches
(design 0011). Stores without that barrier do (design 0013).

All workers share the expectations. They are sets of names and uids, never counts, so an event that
is replayed has no further effect; upstream counts creations and requires that each is seen exactly
once. Expectations are set and forgotten only under the key's fence. They expire, since it is not
guaranteed that what is expected will happen.

Source: ControllerExpectations and UIDTrackingControllerExpectations in
pkg/controller/controller_utils.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kcm import errors
from kcm.redisio import Fence, RedisIO
from kcm.redisio.scripts import NO_FENCE

EXPECTATIONS_TIMEOUT = 300.0  # seconds until expectations expire, as upstream


@dataclass(frozen=True)
class Pending:
    """The changes that are still expected: creations by name, and deletions by uid."""

    creations: frozenset[str] = frozenset()
    deletions: frozenset[str] = frozenset()

    @property
    def fulfilled(self) -> bool:
        """Whether nothing is expected any more."""
        return not self.creations and not self.deletions


class ControllerExpectations:
    """The expectations of one controller, by the keys of its work queue."""

    def __init__(self, io: RedisIO, controller: str, timeout: float = EXPECTATIONS_TIMEOUT) -> None:
        self._io = io
        self._controller = controller
        self._timeout_ms = round(timeout * 1000)

    def expect(
        self,
        key: str,
        *,
        creations: Iterable[str] = (),
        deletions: Iterable[str] = (),
        fence: Fence | None = None,
    ) -> None:
        """Replaces the key's expectations. Raises Fenced.

        Call it before the writes, so that they cannot be observed before they are expected.
        """
        args = fence.args() if fence else NO_FENCE
        entries = _entries(creations, deletions)
        reply = self._io.call("expect_set", *args, self._name(key), self._timeout_ms, *entries)
        _require_held(reply, fence)

    def observe_changes(
        self, key: str, *, creations: Iterable[str] = (), deletions: Iterable[str] = ()
    ) -> int:
        """Removes observed changes from the expectations, and returns how many of them were
        expected.

        A deletion is observed when it begins (deletionTimestamp).
        """
        entries = _entries(creations, deletions)
        return int(self._io.call("expect_observe", self._name(key), *entries)[1])

    def pending(self, key: str) -> Pending:
        """Returns the changes that are still expected and have not expired."""
        _, *entries = self._io.call("expect_pending", self._name(key), call_id="")
        parts = [entry.partition(" ") for entry in entries]
        return Pending(
            creations=frozenset(name for kind, _, name in parts if kind == "create"),
            deletions=frozenset(uid for kind, _, uid in parts if kind == "delete"),
        )

    def satisfied(self, key: str) -> bool:
        """Reports whether a sync may create and delete, because nothing is expected."""
        return self.pending(key).fulfilled

    def forget(self, key: str, fence: Fence | None = None) -> None:
        """Removes the expectations of a key whose object is gone. Raises Fenced."""
        args = fence.args() if fence else NO_FENCE
        _require_held(self._io.call("expect_forget", *args, self._name(key), call_id=""), fence)

    def _name(self, key: str) -> str:
        return self._io.keys.expectations(self._controller, key)


def _entries(creations: Iterable[str], deletions: Iterable[str]) -> list[str]:
    return [f"create {name}" for name in creations] + [f"delete {uid}" for uid in deletions]


def _require_held(reply: list[str], fence: Fence | None) -> None:
    if reply[0] == "FENCED":
        raise errors.Fenced(f"expectations were not stored, since {fence} is no longer held")
