"""`PriorityLevel`: the seats of one level, and the requests that wait for them in fair queues.

A queue is served the earlier the less it had: its `virtual_start` grows by the seats and seconds of
each of its requests. A queue that was empty starts where the others are, so it can save nothing up;
and so a queue exists only while it has requests.

Source: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/queueset/queueset.go,
Kubernetes 1.36. Departure: a level's progress is the start of the request served last, not an
integral over time, which orders the requests of queues that are never idle alike.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from kcm.api.flowcontrol_v1 import PriorityLevelConfiguration, QueuingConfiguration
from kcm.apiserver.flowcontrol.demand import Demand
from kcm.apiserver.flowcontrol.metrics import FlowMetrics
from kcm.apiserver.flowcontrol.schemas import Flow
from kcm.apiserver.flowcontrol.shares import SeatLimits
from kcm.apiserver.flowcontrol.shuffle_sharding import deal, hash_flow
from kcm.apiserver.http_errors import TooManyRequests

OBJECTS_PER_SEAT, MOST_SEATS = 100, 10  # of a list
ESTIMATED_SECONDS = 0.003  # that a request takes, until it has shown how long it did
LARGEST_HAND = 15  # queues, as upstream


@dataclass(eq=False, slots=True)
class _Waiting:
    """A request in a queue, and the future that ends when it may start."""

    seats: int
    may_start: asyncio.Future[None]


@dataclass(eq=False, slots=True)
class _Queue:
    """Requests that wait, in the order in which they came."""

    number: int
    virtual_start: float  # of the next request
    waiting: deque[_Waiting] = field(default_factory=deque)
    seats: int = 0  # of all its requests, those that are executing included


class Held(NamedTuple):
    """The seats of a request that executes, and the queue to which they count, None without
    queues.
    """

    flow: Flow
    seats: int
    queue: _Queue | None
    since: float


class _RefusedError(Exception):
    """A request gets no seat. Its only argument is the reason, as metrics name it."""


class PriorityLevel:
    """One priority level. Only the event loop's thread may use it."""

    def __init__(
        self,
        configuration: PriorityLevelConfiguration,
        limits: SeatLimits,
        metrics: FlowMetrics,
        now: float,
    ) -> None:
        self.demand = Demand(now)
        self.executing = 0  # seats
        self._progress = 0.0
        self._waiting = 0  # requests
        self._metrics = metrics
        self._queues: dict[int, _Queue] = {}  # by number, those with requests
        self.current = limits.nominal - (limits.nominal - limits.lower) // 2
        self.configure(configuration, limits)

    def configure(self, configuration: PriorityLevelConfiguration, limits: SeatLimits) -> None:
        """Changes the level's limits. Requests that wait keep their place."""
        self.uid = (configuration.metadata.uid or "").encode()
        self.limits = limits
        limited = configuration.spec.limited
        self.exempt = limited is None
        self._queuing = limited.limit_response.queuing if limited is not None else None

    def width(self, listed: int) -> int:
        """Returns how many seats a request takes that reads so many objects."""
        if listed <= OBJECTS_PER_SEAT:
            return 1
        widest = self.limits.widest(_hand_size(self._queuing) if self._queuing is not None else 1)
        return min(math.ceil(listed / OBJECTS_PER_SEAT), MOST_SEATS, widest)

    def set_current(self, seats: int) -> None:
        """Changes how many seats the level has for now, and starts what fits in."""
        self.current = seats
        self._dispatch()

    async def take(self, flow: Flow, seats: int, patience: float | None) -> Held:
        """Returns seats, which `release` takes back, after waiting for them.

        Raises TooManyRequests if the queue is full, or after `patience` seconds.
        """
        began = _now()
        self.demand.change(seats, began)
        try:
            queue = await self._take(flow, seats, patience)
        except BaseException as error:  # who stops waiting is cancelled, and is counted, too
            ended = _now()
            self.demand.change(-seats, ended)
            self._metrics.refuse(flow, _reason(error), ended - began)
            if isinstance(error, _RefusedError):
                raise TooManyRequests from None
            raise
        started = _now()
        self._metrics.start(flow, seats, started - began)
        return Held(flow, seats, queue, started)

    def release(self, held: Held) -> None:
        """Gives seats to those who wait."""
        ended = _now()
        self.executing -= held.seats
        if held.queue is not None:
            held.queue.virtual_start += held.seats * (ended - held.since - ESTIMATED_SECONDS)
            self._subtract(held.queue, held.seats)
        self.demand.change(-held.seats, ended)
        self._metrics.finish(held.flow, held.seats)
        self._dispatch()

    async def _take(self, flow: Flow, seats: int, patience: float | None) -> _Queue | None:
        """Takes seats and returns the queue to which they count, None without queues."""
        if self._queuing is None:
            if not (self.exempt or self._fits(seats)):
                raise _RefusedError("concurrency-limit")
            self.executing += seats
            return None
        queue = self._pick(flow, self._queuing)
        fits = not self._waiting and self._fits(seats)
        if not fits and len(queue.waiting) >= (self._queuing.queue_length_limit or 0):
            raise _RefusedError("queue-full")
        self._queues[queue.number] = queue
        queue.seats += seats
        if fits:
            self._start(queue, seats)
        else:
            await self._wait(queue, flow, seats, patience)
        return queue

    async def _wait(self, queue: _Queue, flow: Flow, seats: int, patience: float | None) -> None:
        one = _Waiting(seats, asyncio.get_running_loop().create_future())
        queue.waiting.append(one)
        self._waiting += 1
        self._metrics.enqueue(flow, 1)
        self._dispatch()
        try:
            async with asyncio.timeout(patience):
                await one.may_start
        except BaseException as error:  # who stops waiting is cancelled, and gives all back, too
            self._leave(queue, one)
            if isinstance(error, TimeoutError):
                raise _RefusedError("time-out") from None
            raise
        finally:
            self._metrics.enqueue(flow, -1)

    def _leave(self, queue: _Queue, one: _Waiting) -> None:
        """Takes a request out that no longer waits. It may have been started a moment ago."""
        if one in queue.waiting:
            queue.waiting.remove(one)
            self._waiting -= 1
        else:
            self.executing -= one.seats
        self._subtract(queue, one.seats)
        self._dispatch()

    def _subtract(self, queue: _Queue, seats: int) -> None:
        queue.seats -= seats
        if not queue.seats:
            del self._queues[queue.number]

    def _fits(self, seats: int) -> bool:
        """Reports whether so many seats are free. A request that wants more than there are is
        served alone.
        """
        return self.executing + seats <= self.current or not self.executing

    def _pick(self, flow: Flow, queuing: QueuingConfiguration) -> _Queue:
        """Returns the shortest queue of the flow's hand, which may be a new one."""
        hand = _deal_hand(flow, queuing.queues or 1, _hand_size(queuing))
        number = min(hand, key=self._length)
        return self._queues.get(number) or _Queue(number, self._progress)

    def _length(self, number: int) -> int:
        queue = self._queues.get(number)
        return queue.seats if queue is not None else 0

    def _start(self, queue: _Queue, seats: int) -> None:
        self.executing += seats
        self._progress = max(self._progress, queue.virtual_start)
        queue.virtual_start += seats * ESTIMATED_SECONDS

    def _dispatch(self) -> None:
        """Starts requests as long as there are seats for the next one."""
        while self._waiting:
            queue = self._next()
            if not self._fits(queue.waiting[0].seats):
                return
            one = queue.waiting.popleft()
            self._waiting -= 1
            self._start(queue, one.seats)
            if not one.may_start.done():
                one.may_start.set_result(None)

    def _next(self) -> _Queue:
        """Returns the queue whose next request would end first."""
        return min(
            (queue for queue in self._queues.values() if queue.waiting),
            key=lambda queue: queue.virtual_start + queue.waiting[0].seats * ESTIMATED_SECONDS,
        )


def _reason(error: BaseException) -> str:
    return str(error) if isinstance(error, _RefusedError) else "cancelled"


def _hand_size(queuing: QueuingConfiguration) -> int:
    """Returns the size of a hand, which what is stored may give wrongly."""
    return max(1, min(queuing.hand_size or 1, queuing.queues or 1, LARGEST_HAND))


@lru_cache(maxsize=1024)
def _deal_hand(flow: Flow, queues: int, size: int) -> tuple[int, ...]:
    return tuple(deal(hash_flow(flow.schema, flow.distinguisher), queues, size))


def _now() -> float:
    return asyncio.get_running_loop().time()
