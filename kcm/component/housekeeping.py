"""The periodic loops that trim watch logs and delete expired Events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from kcm.api import scheme
from kcm.api.core_v1 import Event
from kcm.component.loop_names import loop_name
from kcm.reconcile.contract import Controller
from kcm.redisio import Fence
from kcm.store import DeleteOptions, WriteItem
from kcm.store.reader import each_list_item
from kcm.store.trim import trim

if TYPE_CHECKING:
    from kcm.component.context import ControllerContext

TRIM_EVERY = 30.0  # seconds; there must be several passes within the retention, see store.trim
EXPIRE_EVERY = 60.0  # seconds

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
        trim(context.io, scheme.resources())

    def expire_events(state: Mapping[str, str], fence: Fence) -> None:
        ttl = context.options.generic.event_ttl
        _expire(context, context.clock.now() - ttl, fence)

    yield "housekeeping.trim", TRIM_EVERY, trim_watches
    yield "housekeeping.events", EXPIRE_EVERY, expire_events


def _expire(context: ControllerContext, before: datetime, fence: Fence) -> None:
    resource = scheme.resource_of(Event)
    expired: list[WriteItem] = []
    for event in each_list_item(context.store, resource):
        assert isinstance(event, Event)
        last = event.last_timestamp or event.metadata.creation_timestamp
        if last is not None and last < before:
            item = context.store.build_delete(event, DeleteOptions())
            if item is not None:
                expired.append(item)
    context.store.write(expired, fence=fence)
