"""Runs periodic loops, one pass of a loop at a time over all workers (design 0023).

Guarantees: a pass runs under its loop's lease, which is taken without waiting. All writes of the
pass have the lease's fence, as has its memory. A pass that comes within half an interval of the
last one is not run, so two beats do no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import structlog

from kcm import errors
from kcm.coordination import FencedLease
from kcm.manager.context.context import ControllerContext
from kcm.manager.ticks.housekeeping import housekeeping_loops
from kcm.manager.ticks.names import loop_name
from kcm.manager.ticks.resting import ENDED, RESTS_AFTER
from kcm.reconcile.carrying import PlanCarrier
from kcm.reconcile.contract import Controller, Tick
from kcm.reconcile.passes import TickView, list_for_tick
from kcm.reconcile.plan import PassPlan
from kcm.redisio import Fence, RedisIO
from kcm.store.writes import observing
from kcm.store.writes.observing import Author

log = structlog.get_logger("kcm.tick")


@dataclass(frozen=True)
class PassInput:
    """What a pass begins with: the memory of the last pass, the fence, and the time and epoch of
    Redis.
    """

    state: Mapping[str, str]
    fence: Fence
    moment: float  # seconds
    epoch: str


@dataclass(frozen=True)
class PassResult:
    """The result of a pass: its memory (None keeps the present one), and loops to run next."""

    state: Mapping[str, str] | None = None
    wakes: tuple[str, ...] = ()
    idle: bool = False  # whether there was nothing to do
    waits: tuple[str, ...] | None = None  # see `PassPlan.waits`
    wrote: bool = False  # whether objects were to be written


Pass = Callable[[PassInput], PassResult]


@dataclass(frozen=True)
class Loop:
    """One periodic loop: its name, its period in seconds, and one pass of it."""

    name: str
    every: float
    run: Pass
    sees: str = ""  # the loop whose memory the pass gets, "" for its own
    fields: tuple[str, ...] = ()  # the fields of that memory that the pass gets, empty for all


class TickRunner:
    """Runs the loops of the controllers of one process."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._client = context.clients.client(context.member.kind)
        self._loops = {loop.name: loop for loop in self._all()}
        skipped = context.selection.skipped or {}
        self._skipped = {
            kind.short_name for kind in context.options.types() if kind.name in skipped
        }

    def _all(self) -> Iterator[Loop]:
        for controller in self._context.controllers:
            for tick in controller.ticks():
                sees = tick.sees and loop_name(controller, replace(tick, name=tick.sees))
                run = self._controller_pass(controller, tick)
                yield Loop(loop_name(controller, tick), tick.every, run, sees, tick.fields)
        for name, every, work in housekeeping_loops(self._context):
            yield Loop(name, every, partial(_housekeeping, work))

    def _controller_pass(self, controller: Controller, tick: Tick) -> Pass:
        # With another API server, a controller may have an identity of its own.
        clients = self._context.clients
        client = self._client if clients.remote is None else clients.client(controller.name)
        carrier = self._context.carrier(controller, client)

        def run(begun: PassInput) -> PassResult:
            context = self._context
            context.caches.follow()
            context.wait_fresh(context.caches.resources(controller))
            view = context.caches.view(controller, context.clock.now())
            listed = list_for_tick(tick, context.objects)
            plan = tick.run(TickView(view, begun.moment, begun.epoch, listed), begun.state)
            self._carry_out(controller.name, carrier, plan, begun.fence)
            wakes = (loop_name(controller, replace(tick, name=name)) for name in plan.wakes)
            return PassResult(
                plan.state,
                tuple(wakes),
                idle=_is_empty(plan),
                waits=plan.waits,
                wrote=_writes(plan),
            )

        return run

    def _carry_out(self, name: str, carrier: PlanCarrier, plan: PassPlan, fence: Fence) -> None:
        with observing.acting(Author("controller", name)):
            outcome = carrier.carry_out_pass(plan, self._context.io, fence)
        for failure in outcome.failures:
            if isinstance(failure.error, errors.LimitReached):
                continue  # As planned: a later pass does the rest.
            error = str(failure.error)
            log.warning("a write of a pass failed", controller=name, error=error)
        if plan.error is not None:
            raise plan.error

    def run(self, name: str, due: float) -> PassResult | None:
        """Runs one pass that was due at `due` (Unix seconds), and the loops that it wakes.

        Returns None if the pass was not run, because it is running elsewhere or ran a short time
        ago, or because its controller was left out at the start: beat does not know what the store
        serves. Raises LookupError for an unknown loop, and what the pass raises.
        """
        loop = self._loops.get(name)
        if loop is None:
            if name.partition(".")[0] in self._skipped:
                return None
            raise LookupError(f"no enabled controller has a periodic loop {name!r}")
        with self._hold_lease(loop) as fence:
            passed = self._run_pass(loop, due, fence) if fence is not None else None
        if passed is None:
            return None
        followers = (other.name for other in self._loops.values() if other.sees == name)
        for woken in dict.fromkeys((*passed.wakes, *followers)):
            self._run_woken(self._loops[woken], due)
        return passed

    def _run_woken(self, loop: Loop, due: float) -> None:
        """Runs a pass in addition to the regular ones, however short ago the last one was."""
        with self._hold_lease(loop) as fence:
            if fence is not None:
                self._run_pass(replace(loop, every=0.0), due, fence)

    def _run_pass(self, loop: Loop, due: float, fence: Fence) -> PassResult | None:
        io = self._context.io
        key = io.keys.tick_state(loop.name)
        reply = io.call("tick_begin", *fence.args(), key, int(due * 1000), int(loop.every * 1000))
        if reply[0] != "RUN":
            return None
        _, now, epoch = reply
        state, seen = _load_memory(io, io.keys.tick_state(loop.sees or loop.name), loop.fields)
        passed = loop.run(PassInput(state, fence, int(now) / 1000, epoch))
        # A loop that sees another one has no memory of its own.
        kept = {RESTS_AFTER: seen if passed.idle else ""} if loop.sees else passed.state
        pairs = [part for pair in (kept or {}).items() for part in pair]
        ended = io.call("tick_end", *fence.args(), key, "0" if kept is None else "1", *pairs)
        if ended[0] == "FENCED":
            raise errors.Fenced(f"the pass of {loop.name} lost its lease")
        return passed

    @contextmanager
    def _hold_lease(self, loop: Loop) -> Iterator[Fence | None]:
        """Holds and renews the loop's lease while a pass runs.

        Yields the fence, or None if another process holds the lease.
        """
        context = self._context
        duration = context.lease_duration
        lease = FencedLease(
            context.io,
            f"tick:{loop.name}",
            context.identity,
            duration=duration,
            clock=context.clock,
        )
        if not lease.try_acquire():
            yield None
            return
        try:
            with context.host.repeat(f"keep-{loop.name}", lease.renew_every, lease.renew):
                yield lease.fence
        finally:
            lease.release()


def _housekeeping(
    work: Callable[[Mapping[str, str], Fence], Mapping[str, str] | None], begun: PassInput
) -> PassResult:
    return PassResult(work(begun.state, begun.fence), idle=True, waits=())


def _is_empty(plan: PassPlan) -> bool:
    return not (_writes(plan) or plan.limits or plan.wakes)


def _writes(plan: PassPlan) -> bool:
    return bool(plan.steps or plan.events)


def _load_memory(io: RedisIO, key: str, wanted: tuple[str, ...]) -> tuple[Mapping[str, str], str]:
    """Returns the memory of a loop, and the time when the pass that saved it ended.

    Fields that begin with a dot are the runner's own.
    """
    fields = wanted or tuple(name.decode() for name in io.execute("HKEYS", key))
    fields = tuple(name for name in fields if not name.startswith("."))
    *values, ended = io.execute("HMGET", key, *fields, ENDED)
    pairs = zip(fields, values, strict=True)
    memory = {name: value.decode() for name, value in pairs if value is not None}
    return memory, (ended or b"").decode()
