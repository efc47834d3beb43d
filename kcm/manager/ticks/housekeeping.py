"""The periodic loops that trim watch logs and delete expired Events.

Departure: upstream bounds Events by their lifetime alone, and by the admission plugin
EventRateLimit where it is switched on. Resource quotas do not count Events, so here the oldest of a
namespace go when there are very many.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

import structlog

from kcm import errors
from kcm.api.core_v1 import Event
from kcm.apimachinery.meta_v1 import parse_time
from kcm.manager.ticks.names import loop_name
from kcm.reconcile.contract import Controller
from kcm.redisio import Fence
from kcm.store import DeleteOptions, damage
from kcm.store.watch import trim

if TYPE_CHECKING:
    from kcm.manager.context.context import ControllerContext

TRIM_EVERY = 30.0  # seconds; there must be several passes within the retention, see store.trim
EXPIRE_EVERY = 60.0  # seconds
MOST_EVENT_BYTES = 32 * 1024 * 1024  # of JSON, which a namespace keeps: some 40,000 usual Events
_EVENTS = Event.resource

log = structlog.get_logger("kcm.housekeeping")

Pass = Callable[[Mapping[str, str], Fence], Mapping[str, str] | None]


def loop_periods(controllers: Sequence[Controller]) -> dict[str, float]:
    """Returns the periodic loops of these controllers and kcm's own, with periods in seconds."""
    loops = {
        loop_name(controller, tick): tick.every
        for controller in controllers
        for tick in controller.ticks()
    }
    return {**loops, **periods()}


def periods() -> Mapping[str, float]:
    """Returns the periods of the loops in seconds, by name, for beat."""
    return {"housekeeping.trim": TRIM_EVERY, "housekeeping.events": EXPIRE_EVERY}


def housekeeping_loops(context: ControllerContext) -> Iterator[tuple[str, float, Pass]]:
    """Yields the name, the period and the pass of each loop."""

    def trim_watches(state: Mapping[str, str], fence: Fence) -> None:
        context.caches.follow()  # The watch logs of custom kinds are trimmed as well.
        trim(context.io, context.store.scheme.resources())

    def expire(state: Mapping[str, str], fence: Fence) -> None:
        expire_events(context, fence)

    yield "housekeeping.trim", TRIM_EVERY, trim_watches
    yield "housekeeping.events", EXPIRE_EVERY, expire


def expire_events(
    context: ControllerContext, fence: Fence | None = None, *, most_bytes: int = MOST_EVENT_BYTES
) -> None:
    """Deletes the Events that were not written for the time of `--event-ttl`, and the oldest of
    namespaces whose Events take more than `most_bytes`.

    Finalizers do not keep them, as they keep no key of etcd whose lease has ended.
    """
    written: dict[str, list[tuple[datetime, int, str]]] = defaultdict(list)
    now = context.clock.now()
    before = now - context.options.generic.event_ttl
    for page in context.store.raw_pages(_EVENTS):
        expired = []
        for event, size in _decode(page):
            last = _last_write(event, now)
            if last < before:
                expired.append(event)
            else:
                written[event.namespace].append((last, size, event.key))
        _delete(context, expired, fence)
    for namespace, entries in written.items():
        surplus = _find_surplus(entries, most_bytes)
        if not surplus:
            continue
        log.warning(
            "A namespace has more Events than it may, the oldest are deleted",
            namespace=namespace, deleted=len(surplus),
        )  # fmt: skip
        for page in context.store.raw_pages(_EVENTS, namespace):
            _delete(context, [event for event, _ in _decode(page) if event.key in surplus], fence)


def _decode(page: Sequence[tuple[str, bytes]]) -> Iterator[tuple[Event, int]]:
    """Yields the Events of a page with their sizes in bytes. What cannot be read is left out."""
    for key, raw in page:
        with suppress(errors.Damaged):
            event = damage.decode_object(_EVENTS, key, raw)
            yield event, len(raw)


def _last_write(event: Event, now: datetime) -> datetime:
    """Returns when an Event was last written.

    Upstream's storage knows that. The last timestamp is the client's word, which is not taken for a
    time to come.
    """
    meta = event.metadata
    said = [event.last_timestamp]
    for entry in meta.managed_fields or ():
        with suppress(ValueError):
            said.append(parse_time(str(entry.get("time"))))
    created = meta.creation_timestamp or now
    return max([created, *(time for time in said if time is not None and time <= now)])


def _find_surplus(entries: list[tuple[datetime, int, str]], most: int) -> set[str]:
    """Returns the keys of the oldest Events of a namespace, which are beyond what it keeps."""
    total = sum(size for _, size, _ in entries)
    surplus: set[str] = set()
    if total <= most:
        return surplus
    for _, size, key in sorted(entries, key=lambda entry: entry[0]):
        if total <= most:
            break
        surplus.add(key)
        total -= size
    return surplus


def _delete(context: ControllerContext, events: Sequence[Event], fence: Fence | None) -> None:
    built = [
        context.store.build_delete(event.with_metadata(finalizers=None), DeleteOptions())
        for event in events
    ]
    context.store.write([item for item in built if item is not None], fence=fence)
