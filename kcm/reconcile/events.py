"""Records Kubernetes Events, which tell users what controllers did.

Recording never blocks or fails a sync. Bursts are combined and limited as upstream does it (see
`correlator`). Delivery is not guaranteed: Events are dropped when too many wait or when writing
them fails, and the log has their number.

Source: staging/src/k8s.io/client-go/tools/record/event.go, Kubernetes 1.33.
"""

from __future__ import annotations

import random
from collections import deque
from datetime import UTC, datetime, timedelta

import structlog

from kcm import errors
from kcm.api import codec, core_v1
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apimachinery.names import subdomain_faults
from kcm.clock import Clock
from kcm.loops import Loop, Turn
from kcm.reconcile.correlator import (
    REPEATED_WITHIN,
    EventCorrelator,
    EventDecision,
    ExpiringMapping,
    Occurrence,
)
from kcm.reconcile.plan import Event
from kcm.store.objects import ObjectStore
from kcm.store.rules import new_uid

log = structlog.get_logger("kcm.events")

MOST_OF_MESSAGE = 1000  # characters; with what says that it was cut, upstream's limit of 1024
MAX_WAITING = 5000  # the most Events that wait while the store is busy or unavailable
WRITE_EVERY = 0.05  # seconds between writes, so that the Events of a burst share one
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class EventRecorder(Loop):
    """Takes Events from any thread, and writes them in its turns."""

    gathers = WRITE_EVERY

    def __init__(self, store: ObjectStore, clock: Clock, rng: random.Random | None = None) -> None:
        """`rng` draws the uids of Events."""
        super().__init__("kcm-events")
        self._store = store
        self._clock = clock
        self._rng = rng or random.SystemRandom()
        self._correlator = EventCorrelator(clock)
        self._waiting: deque[Occurrence] = deque()
        self._written: ExpiringMapping[tuple[str, ...], bytes] = ExpiringMapping(clock)  # JSON
        self._dropped = 0
        self._last_suffix = 0  # of an Event's name
        # New Events, by identity, that are not written yet. They survive an outage of the store.
        self._fresh: dict[tuple[str, ...], core_v1.Event] = {}

    def record(self, event: Event, component: str, host: str = "") -> None:
        """Records an Event of `component`, a controller's name.

        `host` is the node on which it runs, "" if that does not matter. The Event is dropped if too
        many wait.
        """
        if len(self._waiting) >= MAX_WAITING:
            self._dropped += 1
            return
        about = event.about
        reference = (about.api_version, about.kind, about.namespace, about.name, about.uid)
        self._waiting.append(
            Occurrence(
                component,
                reference,
                event.type,
                event.reason,
                errors.shorten(event.message, MOST_OF_MESSAGE),
                host=host,
                field_path=event.field_path,
            )
        )
        self.wake()

    def turn(self, patience: float) -> Turn:
        """Writes the Events that wait. Raises Temporary."""
        if not (self._waiting or self._fresh):
            return Turn()
        try:
            self.flush()
        except errors.Temporary:
            raise
        except Exception:  # Events must never end their process.
            log.exception("Events were dropped")
        return Turn(worked=True)

    def end(self) -> None:
        """Writes the Events that still wait."""
        self.turn(0.0)

    def flush(self) -> None:
        """Writes the Events that wait, new ones in one batch. Raises Temporary."""
        if self._dropped:
            log.warning("Events were dropped, because too many waited", dropped=self._dropped)
            self._dropped = 0
        while self._waiting:
            seen = self._waiting.popleft()
            verdict = self._correlator.correlate(seen)
            if verdict is not None:
                self._take(seen, verdict)
        if self._fresh:
            self._create(self._fresh)
            self._fresh = {}

    def _take(self, seen: Occurrence, verdict: EventDecision) -> None:
        fresh = self._fresh.get(verdict.identity)
        if fresh is not None:
            self._fresh[verdict.identity] = self._with_count(fresh, verdict)
            return
        written = self._written.get(verdict.identity) if verdict.count > 1 else None
        if written is None or not self._update(_decode(written), verdict):
            self._fresh[verdict.identity] = self._new(seen, verdict)

    def _update(self, event: core_v1.Event, verdict: EventDecision) -> bool:
        item = self._store.build_update(self._with_count(event, verdict), event)
        if item is None:
            return True
        result = self._store.write([item])[0]
        if result.ok:
            self._remember(verdict.identity, result.get_stored())
        return result.ok

    def _with_count(self, event: core_v1.Event, verdict: EventDecision) -> core_v1.Event:
        return event.replace(
            count=verdict.count,
            message=verdict.message,
            last_timestamp=self._clock.now().replace(microsecond=0),
        )

    def _create(self, fresh: dict[tuple[str, ...], core_v1.Event]) -> None:
        items = [self._store.build_create(event) for event in fresh.values()]
        for identity, result in zip(fresh, self._store.write(items), strict=True):
            if result.ok:
                self._remember(identity, result.get_stored())
            else:
                self._correlator.forget(identity)
                error = result.error()
                log_refusal = (
                    log.debug if isinstance(error, errors.NamespaceTerminating) else log.warning
                )
                log_refusal("an Event could not be created", error=str(error))

    def _remember(self, identity: tuple[str, ...], stored: core_v1.Event) -> None:
        self._written.put(identity, codec.encode(stored), REPEATED_WITHIN)

    def _new(self, seen: Occurrence, verdict: EventDecision) -> core_v1.Event:
        api_version, kind, namespace, name, uid = seen.about
        now = self._clock.now()
        stamp = now.replace(microsecond=0)
        # Unique among this object's Events and sorted by time, as upstream's names are.
        nanoseconds = (now - _EPOCH) // timedelta(microseconds=1) * 1000
        self._last_suffix = max(nanoseconds, self._last_suffix + 1)
        return core_v1.Event(
            # With a uid chosen here, a create that is repeated after an outage is recognized.
            metadata=ObjectMeta(
                name=self._name(name, f"{self._last_suffix:x}"),
                namespace=namespace or "default",
                uid=new_uid(self._rng),
            ),
            involved_object=core_v1.ObjectReference(
                api_version=api_version,
                kind=kind,
                namespace=namespace,
                name=name,
                uid=uid,
                field_path=seen.field_path or None,
            ),
            type=seen.type,
            reason=seen.reason,
            message=verdict.message,
            source=core_v1.EventSource(component=seen.component, host=seen.host or None),
            reporting_component=seen.component,
            reporting_instance=seen.host,
            first_timestamp=stamp,
            last_timestamp=stamp,
            count=verdict.count,
        )

    def _name(self, about: str, suffix: str) -> str:
        """Returns a name for an Event about the object called `about`: `<about>.<suffix>`.

        Returns a random UUID instead if that is too long for an Event's name or has other
        characters.
        """
        name = f"{about}.{suffix}"
        return new_uid(self._rng) if subdomain_faults(name) else name


def _decode(written: bytes) -> core_v1.Event:
    return codec.decode(written, core_v1.Event.resource, keep_unknown=True)
