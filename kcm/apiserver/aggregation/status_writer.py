"""Writes whether the servers of other APIs can be reached, from one API server at a time.

Every API server could reach others. So that they do not correct each other, one of them checks, the
one that holds a lease, and its writes are fenced by it.

Source: updateAPIServiceStatus in
staging/src/k8s.io/kube-aggregator/pkg/controllers/status/remote/remote_available_controller.go,
Kubernetes 1.33. Departure: upstream's servers all check and write.
"""

from __future__ import annotations

import structlog

from kcm import errors
from kcm.api.apiregistration_v1 import APIService, is_true, with_condition
from kcm.apiserver.aggregation.availability import Outcome
from kcm.apiserver.aggregation.index import RemoteApi, describe
from kcm.clock import Clock
from kcm.coordination.lease import FencedLease, new_holder
from kcm.store import Conditions, Store, Subresource

log = structlog.get_logger("kcm.apiserver")

LEASE = "apiserver-aggregation"
_RESOURCE = APIService.resource


class StatusWriter:
    """Holds the lease, and writes conditions under it. Its methods block."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self._store = store
        self._clock = clock or store.clock
        self._lease = FencedLease(store.io, LEASE, new_holder("apiserver"), clock=self._clock)

    @property
    def held(self) -> bool:
        """Whether this server is the one that checks."""
        return self._lease.held

    def acquire(self) -> bool:
        """Takes or renews the lease, and reports whether it is held."""
        try:
            return self._lease.try_acquire()
        except errors.KcmError as error:
            log.warning("The lease of aggregation cannot be renewed", error=error.message)
            return False

    def release(self) -> None:
        """Gives the lease back."""
        try:
            self._lease.release()
        except errors.KcmError as error:
            log.warning("The lease of aggregation cannot be released", error=error.message)

    def write(self, api: RemoteApi, outcome: Outcome) -> bool:
        """Writes the outcome of a check, unless the APIService says so already or has changed.

        Reports whether the API has become unavailable by it. Raises StoreUnavailable.
        """
        before: list[bool] = []

        def change(old: APIService) -> APIService:
            before[:] = [is_true(old)]
            present = describe(old)
            if present is None or present.target != api.target:
                return old
            return with_condition(old, outcome.condition(self._clock.now()))

        try:
            when = Conditions(fence=self._lease.fence)
            self._store.modify(
                _RESOURCE, api.name, change, subresource=Subresource.STATUS, when=when
            )
        except (errors.NotFound, errors.Conflict, errors.Fenced):
            return False  # it was deleted or changed, or another server checks now
        return bool(before and before[0] and not outcome.passed)
