"""The Lease object for the leader election of managers, in the store.

Source: staging/src/k8s.io/client-go/tools/leaderelection/resourcelock/leaselock.go, Kubernetes
1.33.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kcm import errors
from kcm.api.coordination_v1 import Lease, LeaseSpec
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.coordination.election import LeaderElectionRecord
from kcm.reconcile.carrying import Recorder
from kcm.reconcile.plan import Event
from kcm.store import Store

COMPONENT = "kcm-controller-manager"  # the source of the leader's Events

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # the value of a missing time, like Go's zero time


class StoreLeaseLock:
    """Reads and writes the Lease for one candidate."""

    def __init__(
        self, store: Store, namespace: str, name: str, identity: str, recorder: Recorder
    ) -> None:
        self._store = store
        self._resource = Lease.resource
        self._meta = ObjectMeta(name=name, namespace=namespace)
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
        self._lease = self._store.create(
            Lease(metadata=self._meta, spec=LeaseSpec(**_fields(record)))
        )
        return _version(self._lease)

    def update(self, record: LeaderElectionRecord, version: str) -> str:
        """Replaces the record if it has `version`, and returns the new resourceVersion. Raises
        Conflict.
        """
        base = self._lease or Lease(metadata=self._meta)
        # Other fields of the spec, such as the strategy, are kept.
        spec = base.spec.replace(**_fields(record))
        self._lease = self._store.update(
            base.with_metadata(resource_version=version).with_spec(spec)
        )
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
