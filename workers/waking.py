"""A boot step that gives the worker's event loop a turn when a task in a thread has ended.

A worker takes no message while as many tasks run as it has threads (`worker_disable_prefetch`). At
each turn, the event loop looks whether it may take the next one. A task that ends in a thread
causes no turn of its own, so without this step the messages would wait for the next timer, for up
to a second. Celery's issue 6941 has the same cause.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any

from celery import bootsteps
from celery.concurrency.thread import TaskPool

READ_SIZE = 4096  # bytes; one for each task that has ended


class WakeLoopStep(bootsteps.StartStopStep):  # type: ignore[misc] # celery has no types
    """Wakes the event loop of a worker whose tasks run in threads."""

    requires = ("celery.worker.consumer.connection:Connection",)

    def __init__(self, consumer: Any, **_: Any) -> None:
        self._ends: tuple[socket.socket, socket.socket] | None = None

    def start(self, consumer: Any) -> None:
        if consumer.hub is None or not isinstance(consumer.pool, TaskPool):
            return
        pool = consumer.pool
        self._ends = listening, waking = socket.socketpair()
        listening.setblocking(False)
        waking.setblocking(False)

        def wake(_: object) -> None:
            with suppress(OSError):  # the loop has enough to read, or the connection is gone
                waking.send(b"\0")

        def apply(*args: Any, **options: Any) -> Any:
            result = TaskPool.on_apply(pool, *args, **options)
            result.f.add_done_callback(wake)
            return result

        pool.on_apply = apply
        consumer.hub.add_reader(listening.fileno(), lambda: listening.recv(READ_SIZE))

    def stop(self, consumer: Any) -> None:
        if self._ends is not None:
            consumer.hub.remove_reader(self._ends[0].fileno())
            for end in self._ends:
                end.close()
            self._ends = None
