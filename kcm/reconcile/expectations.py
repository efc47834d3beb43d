"""Expectations: what a controller has done and not yet seen.

A controller whose cache lags behind its own writes would create the same pods again. So it says
before each write what it expects to see, and does nothing for that key until it has seen all of it
or five minutes are over. Over the local store there is no need for that, since a sync starts with
fresh caches (design 0011). Stores without that barrier need it (design 0013).

Guarantees: all workers share the expectations. They are sets of names and uids, never counts, so an
event that is replayed lowers nothing twice; upstream counts creations and has to trust that it sees
each of them once. They are set and forgotten only under the key's fence. Does not guarantee that
what is expected will come: hence the expiry.

Source: ControllerExpectations and UIDTrackingControllerExpectations in
pkg/controller/controller_utils.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kcm import errors
from kcm.redisio import Fence, RedisIO
from kcm.redisio.scripts import NO_FENCE

EXPECTATIONS_TIMEOUT = 300.0  # seconds until expectations that were not met are given up


@dataclass(frozen=True)
class Pending:
    """What is still expected: names of objects that will appear, uids of objects that will go."""

    creations: frozenset[str] = frozenset()
    deletions: frozenset[str] = frozenset()

    @property
    def fulfilled(self) -> bool:
        """Reports whether nothing is expected any more."""
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
        """Replaces the key's expectations by these. Raises Fenced.

        It is called before the writes, so that no observation can come first.
        """
        args = fence.args() if fence else NO_FENCE
        entries = _entries(creations, deletions)
        reply = self._io.call("expect_set", *args, self._name(key), self._timeout_ms, *entries)
        _require_held(reply, fence)

    def observe_changes(
        self, key: str, *, creations: Iterable[str] = (), deletions: Iterable[str] = ()
    ) -> int:
        """Removes what was seen to appear or to go, and returns how much of it was expected.

        An object counts as gone when its deletion begins (deletionTimestamp).
        """
        entries = _entries(creations, deletions)
        return int(self._io.call("expect_observe", self._name(key), *entries)[1])

    def pending(self, key: str) -> Pending:
        """Returns what is still expected and has not expired."""
        _, *entries = self._io.call("expect_pending", self._name(key), call_id="")
        parts = [entry.partition(" ") for entry in entries]
        return Pending(
            creations=frozenset(name for kind, _, name in parts if kind == "create"),
            deletions=frozenset(uid for kind, _, uid in parts if kind == "delete"),
        )

    def satisfied(self, key: str) -> bool:
        """Reports whether a sync may create and delete: nothing is expected, or nothing
        ever was.
        """
        return self.pending(key).fulfilled

    def forget(self, key: str, fence: Fence | None = None) -> None:
        """Drops the expectations of a key whose object is gone. Raises Fenced."""
        args = fence.args() if fence else NO_FENCE
        _require_held(self._io.call("expect_forget", *args, self._name(key), call_id=""), fence)

    def _name(self, key: str) -> str:
        return self._io.keys.expectations(self._controller, key)


def _entries(creations: Iterable[str], deletions: Iterable[str]) -> list[str]:
    return [f"create {name}" for name in creations] + [f"delete {uid}" for uid in deletions]


def _require_held(reply: list[str], fence: Fence | None) -> None:
    if reply[0] == "FENCED":
        raise errors.Fenced(f"expectations were refused: {fence} is no longer held")
