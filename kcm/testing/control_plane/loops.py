"""Runs syncs and periodic loops in threads of the test's process, instead of Celery's workers and
beat.

Queues, leases, fences and plans are those of every kcm: a thread takes the same wake-ups from the
broker's lists that a worker takes, and runs the same `Runner`. Celery itself is not involved.
"""

from __future__ import annotations

import heapq
import json
import threading
from collections.abc import Mapping, Sequence

import structlog

from kcm import errors
from kcm.clock import Clock
from kcm.component.context import ControllerContext
from kcm.component.housekeeping import loop_periods
from kcm.component.ticks import TickRunner
from kcm.reconcile.runner import Runner, SyncFailed
from kcm.redisio import RedisIO
from kcm.testing.faults.agenda import Agenda

log = structlog.get_logger("kcm.testing")

SYNC_THREADS = 4  # a sync that waits for a webhook holds up no other
_AGENDA, _AGENDA_PERIOD = "agenda", 0.1  # seconds
_POLL = 0.5  # seconds that a thread waits for a wake-up before it looks whether it must stop


class SyncThreads:
    """Runs the syncs of all controllers."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._runners: Mapping[str, Runner] = {
            controller.short_name: context.runner(controller) for controller in context.controllers
        }
        prefix = context.io.keys.broker_prefix()
        groups = sorted({controller.group for controller in context.controllers})
        self._lists = [f"{prefix}{group}" for group in groups]

    def start(self) -> list[threading.Thread]:
        """Starts the threads, which run until the context is stopped, and returns them."""
        threads = [
            threading.Thread(target=self._run, args=(number,), name=f"kcm-sync-{number}")
            for number in range(SYNC_THREADS)
        ]
        return _start_all(threads)

    def _run(self, number: int) -> None:
        io = self._context.clients.client(f"sync-{number}").io
        stop = self._context.stop
        while not stop.is_set():
            try:
                self._take_one(io, number)
            except SyncFailed as error:
                log.debug("syncs failed, and are tried again", error=str(error))
            except errors.KcmError as error:
                log.warning("no wake-ups can be read", error=str(error))
                self._context.clock.wait(stop, _POLL)

    def _take_one(self, io: RedisIO, number: int) -> None:
        """Waits for a wake-up, and runs what it asks for."""
        first = number % len(self._lists)  # no list comes first for all threads
        lists = self._lists[first:] + self._lists[:first]
        popped = io.execute("BRPOP", *lists, _POLL)
        if popped is None:
            return
        short_name, key = parse_wakeup(popped[1])
        runner = self._runners.get(short_name)
        if runner is not None:
            runner.run(key)


def parse_wakeup(raw: bytes) -> tuple[str, str]:
    """Returns the controller's short name and the key of a wake-up, ("", "") for anything else."""
    try:
        message = json.loads(raw)
        task, body = message["headers"]["task"], json.loads(message["body"])
        _, name, kind = task.split(".")
        key = body[0][0]
    except (ValueError, TypeError, LookupError, AttributeError):
        return "", ""
    return (name, key) if kind == "sync" and isinstance(key, str) else ("", "")


class TickThread:
    """Runs the periodic loops, each when it is due, and what is on the agenda of the test."""

    def __init__(self, context: ControllerContext, agenda: Agenda) -> None:
        self._context = context
        self._runner = TickRunner(context)
        self._agenda = agenda
        self._periods = {**loop_periods(context.controllers), _AGENDA: _AGENDA_PERIOD}

    def start(self) -> list[threading.Thread]:
        """Starts the thread, which runs until the context is stopped, and returns it."""
        return _start_all([threading.Thread(target=self._run, name="kcm-ticks")])

    def _run(self) -> None:
        clock, stop = self._context.clock, self._context.stop
        begun = clock.monotonic()
        due = [(begun + every, name) for name, every in self._periods.items()]
        heapq.heapify(due)
        while due and not clock.wait(stop, max(due[0][0] - clock.monotonic(), 0.0)):
            at, name = heapq.heappop(due)
            self._tick(name, clock)
            # After a pass that took long, the missed ones are left out.
            heapq.heappush(due, (max(at, clock.monotonic()) + self._periods[name], name))

    def _tick(self, name: str, clock: Clock) -> None:
        try:
            if name == _AGENDA:
                self._agenda.step(clock.now())
                return
            self._runner.run(name, clock.now().timestamp())
        except Exception as error:  # noqa: BLE001 - a pass that fails must not end the others
            log.warning("a pass failed", loop=name, error=str(error))


def _start_all(threads: Sequence[threading.Thread]) -> list[threading.Thread]:
    for thread in threads:
        thread.daemon = True
        thread.start()
    return list(threads)
