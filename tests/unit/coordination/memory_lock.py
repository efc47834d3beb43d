"""A Lease in memory with versions, whose store can fail, for tests of the leader election."""

from __future__ import annotations

from dataclasses import dataclass, field

from kcm import errors
from kcm.coordination import LeaderElectionRecord


@dataclass
class Shared:
    """The stored Lease that all candidates read and write."""

    record: LeaderElectionRecord | None = None
    version: int = 0
    events: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)


class MemoryLock:
    """One candidate's access to the shared Lease."""

    def __init__(self, shared: Shared, identity: str) -> None:
        self.shared = shared
        self._identity = identity
        self.reads = 0  # how often this candidate has looked at the object
        self.down = False

    def _record_call(self, verb: str) -> None:
        self.shared.calls.append(verb)
        if self.down:
            raise errors.StoreUnavailable

    def get(self) -> tuple[LeaderElectionRecord, str] | None:
        self.reads += 1
        self._record_call("get")
        if self.shared.record is None:
            return None
        return self.shared.record, str(self.shared.version)

    def create(self, record: LeaderElectionRecord) -> str:
        self._record_call("create")
        if self.shared.record is not None:
            raise errors.AlreadyExists
        return self._store(record)

    def update(self, record: LeaderElectionRecord, version: str) -> str:
        self._record_call("update")
        if version != str(self.shared.version):
            raise errors.Conflict
        return self._store(record)

    def _store(self, record: LeaderElectionRecord) -> str:
        self.shared.record = record
        self.shared.version += 1
        return str(self.shared.version)

    def identity(self) -> str:
        return self._identity

    def describe(self) -> str:
        return "kube-system/kcm-controller-manager"

    def record_event(self, text: str) -> None:
        self.shared.events.append(f"{self._identity} {text}")
