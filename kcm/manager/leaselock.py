"""The Lease object for the leader election of managers, in the store or on another API server.

Source: staging/src/k8s.io/client-go/tools/leaderelection/resourcelock/leaselock.go, Kubernetes
1.33.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kcm import errors
from kcm.api.coordination_v1 import Lease, LeaseSpec
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.clock import Clock
from kcm.coordination.election import LeaderElectionRecord, LeaseLock
from kcm.manager.context.leading import Leadership
from kcm.reconcile.carrying import Recorder
from kcm.reconcile.plan import Event
from kcm.store import WriteItem
from kcm.store.objects import ObjectStore

COMPONENT = "kcm-controller-manager"  # the source of the leader's Events

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # the value of a missing time, like Go's zero time


class StoreLeaseLock:
    """Reads and writes the Lease for one candidate."""

    def __init__(
        self, store: ObjectStore, place: ObjectMeta, identity: str, recorder: Recorder
    ) -> None:
        """`place` has the namespace and the name of the Lease."""
        self._store = store
        self._resource = Lease.resource
        self._meta = place
        self._identity = identity
        self._recorder = recorder
        self._lease: Lease | None = None  # as last read or written

    def get(self) -> tuple[LeaderElectionRecord, str] | None:
        """Returns the record and its resourceVersion, None if there is no Lease."""
        try:
            lease = self._store.get(self._resource, self.describe())
        except errors.NotFound:
            return None
        self._lease = lease
        return _record(lease), _version(lease)

    def create(self, record: LeaderElectionRecord) -> str:
        """Creates the Lease, and returns its resourceVersion. Raises AlreadyExists."""
        lease = Lease(metadata=self._meta, spec=LeaseSpec(**_fields(record)))
        return self._write(self._store.build_create(lease))

    def update(self, record: LeaderElectionRecord, version: str) -> str:
        """Replaces the record if it has `version`, and returns the new resourceVersion. Raises
        Conflict.
        """
        base = self._lease or Lease(metadata=self._meta)
        # Other fields of the spec, such as the strategy, are kept.
        spec = base.spec.replace(**_fields(record))
        old = base.with_metadata(resource_version=version)
        item = self._store.build_update(old.with_spec(spec), old)
        return self._write(item) if item is not None else version

    def _write(self, item: WriteItem[Lease]) -> str:
        self._lease = self._store.write([item])[0].get_stored()
        return _version(self._lease)

    def identity(self) -> str:
        """Returns the identity of this candidate."""
        return self._identity

    def describe(self) -> str:
        """Returns `namespace/name`."""
        return f"{self._meta.namespace}/{self._meta.name}"

    def record_event(self, text: str) -> None:
        """Records an Event about the Lease, such as `<identity> became leader`."""
        about = self._lease or Lease(metadata=self._meta)
        event = Event(about, "Normal", "LeaderElection", f"{self._identity} {text}")
        self._recorder.record(event, COMPONENT)


class AnnouncedLock:
    """A Lease of another API server: all processes of this kcm learn who holds it."""

    def __init__(self, lock: LeaseLock, leadership: Leadership, clock: Clock) -> None:
        self._lock = lock
        self._leadership = leadership
        self._clock = clock
        self.get, self.identity = lock.get, lock.identity
        self.describe, self.record_event = lock.describe, lock.record_event

    def create(self, record: LeaderElectionRecord) -> str:
        """Creates the Lease, and returns its resourceVersion. Raises AlreadyExists."""
        began = self._clock.monotonic()
        version = self._lock.create(record)
        self._announce(record, began)
        return version

    def update(self, record: LeaderElectionRecord, version: str) -> str:
        """Replaces the record if it has `version`, and returns the new resourceVersion. Raises
        Conflict, and StoreUnavailable.

        The Lease is not given away before the processes of this kcm can know.
        """
        began = self._clock.monotonic()
        if record.holder_identity != self.identity():
            self._leadership.resign()
        newer = self._lock.update(record, version)
        self._announce(record, began)
        return newer

    def _announce(self, record: LeaderElectionRecord, began: float) -> None:
        if record.holder_identity == self.identity():
            self._leadership.claim(began)


def _version(lease: Lease) -> str:
    return lease.metadata.resource_version or ""


def _fields(record: LeaderElectionRecord) -> dict[str, Any]:
    return {
        "holder_identity": record.holder_identity,
        "lease_duration_seconds": record.lease_duration_seconds,
        "acquire_time": record.acquire_time,
        "renew_time": record.renew_time,
        "lease_transitions": record.leader_transitions,
    }


def _record(lease: Lease) -> LeaderElectionRecord:
    spec = lease.spec
    return LeaderElectionRecord(
        holder_identity=spec.holder_identity or "",
        lease_duration_seconds=spec.lease_duration_seconds or 0,
        acquire_time=spec.acquire_time or EPOCH,
        renew_time=spec.renew_time or EPOCH,
        leader_transitions=spec.lease_transitions or 0,
    )
