"""Leader election over a coordination.k8s.io Lease, by client-go's rules.

Guarantees: a candidate computes whether another's lease has expired from the time at which it saw
the record change, on its own monotonic clock. So the clocks of hosts need not agree, only run at
about the same rate. A leader that cannot renew for the renew deadline stops leading before others
may start.

Does not guarantee that there is only one leader: a frozen process leads until it checks again.
Nothing here fences; writes have the fences of design 0001.

Source: staging/src/k8s.io/client-go/tools/leaderelection/leaderelection.go, Kubernetes 1.33.
"""

from __future__ import annotations

import random
import socket
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Protocol

import structlog

from kcm import errors
from kcm.clock import Clock, RealClock
from kcm.loops import start_thread

log = structlog.get_logger(__name__)

JITTER_FACTOR = 1.2


def default_identity() -> str:
    """Returns `<host>_<uuid>`, which is the default identity of upstream's controller manager."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


@dataclass(frozen=True)
class LeaderElectionRecord:
    """The content of the Lease object about the leader."""

    holder_identity: str  # '' when it was released
    lease_duration_seconds: int
    acquire_time: datetime
    renew_time: datetime
    leader_transitions: int = 0


class LeaseLock(Protocol):
    """Reads and writes the Lease object. Versions are opaque; any `KcmError` is a failed
    attempt.
    """

    def get(self) -> tuple[LeaderElectionRecord, str] | None:
        """Returns the record and its version, or None if there is no object yet."""
        ...

    def create(self, record: LeaderElectionRecord) -> str:
        """Creates the object, and returns its version. Raises: AlreadyExists."""
        ...

    def update(self, record: LeaderElectionRecord, version: str) -> str:
        """Replaces the record if it has `version`, and returns the new version. Raises:
        Conflict.
        """
        ...

    def identity(self) -> str:
        """Returns the identity of this candidate."""
        ...

    def describe(self) -> str:
        """Returns `namespace/name`, for logs."""
        ...

    def record_event(self, text: str) -> None:
        """Records an Event about the lock, such as `became leader` or `stopped leading`."""
        ...


def _ignore(*_: object) -> None:
    return None


@dataclass(frozen=True)
class LeaderCallbacks:
    """The functions that a candidate calls.

    `on_started_leading` runs in a thread of its own; if it raises, the candidate stops leading. The
    other two must return at once.
    """

    on_started_leading: Callable[[threading.Event], None]  # the event is set when leading ends
    on_stopped_leading: Callable[[], None]  # also if this candidate has never led, as upstream
    on_new_leader: Callable[[str], None] = field(default=_ignore)  # also for the first leader


@dataclass(frozen=True)
class LeaderElectionConfig:
    """The settings of an election, with the defaults of the controller manager's flags.

    Raises: ConfigurationError, in upstream's words, for periods that do not fit together.
    """

    name: str = "kcm-controller-manager"
    namespace: str = "kube-system"
    identity: str = field(default_factory=default_identity)
    lease_duration: float = 15.0  # seconds that others wait after the last change they saw
    renew_deadline: float = 10.0  # seconds of failed renewals after which the leader gives up
    retry_period: float = 2.0  # seconds between attempts
    release_on_cancel: bool = True  # whether to release the lease when it stops

    def __post_init__(self) -> None:
        checks = (
            (
                self.lease_duration <= self.renew_deadline,
                "leaseDuration must be greater than renewDeadline",
            ),
            (
                self.renew_deadline <= JITTER_FACTOR * self.retry_period,
                "renewDeadline must be greater than retryPeriod*JitterFactor",
            ),
            # The object stores whole seconds; upstream would store 0 here.
            (self.lease_duration < 1, "leaseDuration must be at least one second"),
            (self.renew_deadline <= 0, "renewDeadline must be greater than zero"),
            (self.retry_period <= 0, "retryPeriod must be greater than zero"),
            (not self.identity, "Lock identity is empty"),
        )
        for wrong, words in checks:
            if wrong:
                raise errors.ConfigurationError(f"leader election {self.name!r}: {words}")


@dataclass(frozen=True)
class _Observed:
    record: LeaderElectionRecord | None = None
    version: str = ""
    at: float = 0.0  # when this candidate saw the record change, on its monotonic clock

    @property
    def holder(self) -> str:
        return self.record.holder_identity if self.record else ""

    def valid(self, now: float) -> bool:
        return self.record is not None and self.at + self.record.lease_duration_seconds > now


class LeaderElector:
    """One candidate in a leader election."""

    def __init__(
        self,
        config: LeaderElectionConfig,
        lock: LeaseLock,
        callbacks: LeaderCallbacks,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        if lock.identity() != config.identity:
            raise errors.ConfigurationError(
                f"leader election {config.name!r}: the lock's identity {lock.identity()!r} is not "
                f"the configured {config.identity!r}"
            )
        self.config = config
        self._lock = lock
        self._callbacks = callbacks
        self._clock = clock or RealClock()
        self._rng = rng or random.Random()
        self._observed = _Observed()  # replaced as a whole: other threads read it
        self._reported = ""

    @property
    def leader(self) -> str:
        """The identity of the leader that was last seen, "" before the first."""
        return self._observed.holder

    @property
    def is_leader(self) -> bool:
        """Whether this candidate is the leader that was last seen."""
        return self._observed.holder == self.config.identity

    def check(self, max_tolerable_expired: float) -> str | None:
        """Returns an error message if this leader's lease expired too long ago, else None; for
        /healthz.

        It may have expired up to `max_tolerable_expired` seconds ago.
        """
        overdue = self.config.lease_duration + max_tolerable_expired
        if not self.is_leader or self._clock.monotonic() - self._observed.at <= overdue:
            return None
        return f"failed election to renew leadership on lease {self.config.name}"

    def run(self, stop: threading.Event) -> None:
        """Waits for the lease, then leads until the lease is lost or `stop` is set.

        Calls `on_stopped_leading` at the end, also if it never led.
        """
        try:
            if self._acquire(stop):
                self._lead(stop)
        finally:
            self._callbacks.on_stopped_leading()

    def _acquire(self, stop: threading.Event) -> bool:
        log.info("attempting to acquire leader lease", lease=self._lock.describe())
        while not stop.is_set():
            led = self.try_acquire_or_renew()
            self._report_transition()
            if led:
                self._record_event("became leader")
                log.info("acquired leader lease", lease=self._lock.describe())
                return True
            jitter = self._rng.random() * JITTER_FACTOR
            self._clock.wait(stop, self.config.retry_period * (1 + jitter))
        return False

    def _lead(self, stop: threading.Event) -> None:
        over, crashed = threading.Event(), threading.Event()
        start_thread(f"leading-{self.config.name}", partial(self._start_leading, over, crashed))
        try:
            self._renew_until_lost(stop, crashed)
        finally:
            # Before the release, unlike upstream: no other candidate may start before the callback
            # of this one has been asked to stop.
            over.set()
            if self.config.release_on_cancel:
                self.release()
            self._record_event("stopped leading")

    def _start_leading(self, over: threading.Event, crashed: threading.Event) -> None:
        # If the callback fails, upstream's process exits. Here the lease is released, as a leader
        # that does nothing must not keep it.
        try:
            self._callbacks.on_started_leading(over)
        except Exception:  # logged; the elector then releases the lease
            log.exception("leading failed", lease=self._lock.describe())
            crashed.set()

    def _renew_until_lost(self, stop: threading.Event, crashed: threading.Event) -> None:
        while self._renew_in_time(stop):
            self._report_transition()
            if self._clock.wait(stop, self.config.retry_period) or crashed.is_set():
                return
        self._report_transition()
        if not stop.is_set():
            log.error("leader lease lost", lease=self._lock.describe(), leader=self.leader)

    def _renew_in_time(self, stop: threading.Event) -> bool:
        deadline = self._clock.monotonic() + self.config.renew_deadline
        while not stop.is_set():
            if self.try_acquire_or_renew():
                return True
            # Another candidate leads. Upstream would try until the deadline all the same.
            if not self.is_leader:
                return False
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return False
            self._clock.wait(stop, min(left, self.config.retry_period))
        return False

    def try_acquire_or_renew(self) -> bool:
        """Makes one attempt, and reports whether this candidate leads afterwards."""
        try:
            return self._renew_unread() or self._acquire_or_renew_read()
        except errors.KcmError as error:
            log.warning("leader lease not updated", lease=self._lock.describe(), error=str(error))
            return False

    def _renew_unread(self) -> bool:
        # The usual case of a leader: one write, which replaces the version that it wrote last.
        observed = self._observed
        if observed.record is None or not self.is_leader:
            return False
        if not observed.valid(self._clock.monotonic()):
            return False
        try:
            self._write(self._record(observed.record), observed.version)
        except errors.Conflict:
            return False
        return True

    def _acquire_or_renew_read(self) -> bool:
        answer = self._lock.get()
        if answer is None:
            record = self._record(None)
            self._observe(record, self._lock.create(record))
            return True
        record, version = answer
        if record != self._observed.record:
            self._observe(record, version)
        else:
            self._observed = replace(self._observed, version=version)
        held = bool(record.holder_identity) and self._observed.valid(self._clock.monotonic())
        if held and not self.is_leader:
            return False
        self._write(self._record(record), version)
        return True

    def _record(self, old: LeaderElectionRecord | None) -> LeaderElectionRecord:
        now = self._clock.now()
        fresh = LeaderElectionRecord(
            self.config.identity, int(self.config.lease_duration), now, now
        )
        if old is None:
            return fresh
        if old.holder_identity == self.config.identity:
            return replace(
                fresh, acquire_time=old.acquire_time, leader_transitions=old.leader_transitions
            )
        return replace(fresh, leader_transitions=old.leader_transitions + 1)

    def _write(self, record: LeaderElectionRecord, version: str) -> None:
        self._observe(record, self._lock.update(record, version))

    def _observe(self, record: LeaderElectionRecord, version: str) -> None:
        self._observed = _Observed(record, version, self._clock.monotonic())

    def release(self) -> bool:
        """Releases the lease if this candidate holds it, so that others need not wait until it
        expires.

        Returns False if that failed.
        """
        try:
            answer = self._lock.get()
            if answer is None or answer[0].holder_identity != self.config.identity:
                return True
            now = self._clock.now()
            released = LeaderElectionRecord("", 1, now, now, answer[0].leader_transitions)
            self._write(released, answer[1])
        except errors.KcmError as error:
            log.warning("leader lease not released", lease=self._lock.describe(), error=str(error))
            return False
        return True

    def _report_transition(self) -> None:
        if self.leader == self._reported:
            return
        self._reported = self.leader
        log.info("new leader", lease=self._lock.describe(), leader=self.leader)
        self._callbacks.on_new_leader(self.leader)

    def _record_event(self, text: str) -> None:
        try:
            self._lock.record_event(text)
        except errors.KcmError as error:
            log.warning("event not recorded", lease=self._lock.describe(), error=str(error))
