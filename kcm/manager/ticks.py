"""Periodic loops: one pass at a time, over all workers (DESIGN D10).

Guarantees: a pass runs under its loop's lease, which is taken without waiting;
what it writes and remembers carries the lease's fence; a pass that comes within
half an interval of the last one is not run, so two beats are harmless.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from kcm import errors
from kcm.api import scheme
from kcm.coordination import FencedLease
from kcm.manager.context import ControllerContext
from kcm.manager.housekeeping import housekeeping_loops
from kcm.manager.loop_names import loop_name
from kcm.reconcile.caches import declared_models
from kcm.reconcile.contract import Controller, Tick
from kcm.reconcile.executor import PlanExecutor
from kcm.reconcile.plan import Plan
from kcm.redisio import Fence

log = structlog.get_logger("kcm.tick")

Pass = Callable[[Mapping[str, str], Fence], Mapping[str, str] | None]


@dataclass(frozen=True)
class Loop:
    """One periodic loop: its name, its period in seconds, and one pass of it."""

    name: str
    every: float
    run: Pass


class TickRunner:
    """Runs the loops of one process' controllers."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._executor = PlanExecutor(context.store)
        self._loops = {loop.name: loop for loop in self._all()}

    def _all(self) -> Iterator[Loop]:
        for controller in self._context.controllers:
            for tick in controller.ticks():
                yield Loop(
                    loop_name(controller, tick), tick.every, self._controller_pass(controller, tick)
                )
        for name, every, run in housekeeping_loops(self._context):
            yield Loop(name, every, run)

    def _controller_pass(self, controller: Controller, tick: Tick) -> Pass:
        def run(state: Mapping[str, str], fence: Fence) -> Mapping[str, str] | None:
            context = self._context
            context.wait_fresh([scheme.resource_of(m) for m in declared_models(controller)])
            plan = tick.run(context.caches.view(controller, context.clock.now()), state)
            self._carry_out(controller, plan, fence)
            return plan.state

        return run

    def _carry_out(self, controller: Controller, plan: Plan, fence: Fence) -> None:
        outcome = self._executor.execute(plan, fence)
        derived = plan.report(outcome) if plan.report else ()
        for event in (*plan.events, *derived):
            self._context.recorder.record(event, controller.name)
        for failure in outcome.failures:
            error = str(failure.error)
            log.warning("a write of a pass failed", controller=controller.name, error=error)
        if plan.error is not None:
            raise plan.error

    def run(self, name: str, due: float) -> bool:
        """Run one pass that was due at `due` (Unix seconds); false when there was none to run.

        Raises: LookupError for an unknown loop, and what the pass raises.
        """
        loop = self._loops.get(name)
        if loop is None:
            raise LookupError(f"no enabled controller has a periodic loop {name!r}")
        with self._held(loop) as fence:
            return fence is not None and self._run_pass(loop, due, fence)

    def _run_pass(self, loop: Loop, due: float, fence: Fence) -> bool:
        io = self._context.io
        key = io.keys.tick_state(loop.name)
        reply = io.call("tick_begin", *fence.args(), key, int(due * 1000), int(loop.every * 1000))
        if reply[0] != "RUN":
            return False
        state = dict(zip(reply[1::2], reply[2::2], strict=True))
        remembered = loop.run(state, fence)
        pairs = [part for pair in (remembered or {}).items() for part in pair]
        ended = io.call("tick_end", *fence.args(), key, "0" if remembered is None else "1", *pairs)
        if ended[0] == "FENCED":
            raise errors.Fenced(f"the pass of {loop.name} lost its lease")
        return True

    @contextmanager
    def _held(self, loop: Loop) -> Iterator[Fence | None]:
        """The loop's lease while a pass runs, renewed beside it; None when another runs one."""
        context = self._context
        lease = FencedLease(context.io, f"tick:{loop.name}", context.identity, clock=context.clock)
        if not lease.try_acquire():
            yield None
            return
        done = threading.Event()

        def keep() -> None:
            while not context.clock.wait(done, lease.renew_every):
                try:
                    lease.renew()
                except errors.KcmError as error:
                    log.warning("lease of a pass not renewed", loop=loop.name, error=str(error))

        keeper = threading.Thread(target=keep, name=f"keep-{loop.name}", daemon=True)
        keeper.start()
        try:
            yield lease.fence
        finally:
            done.set()
            keeper.join()
            lease.release()
