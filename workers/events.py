"""A boot step that sends Celery's task events a few times a second.

Celery sends the events of a task immediately: a message to the broker before the task reaches a
child, and two more when it has ended. For Flower it is enough to get them a moment later. Events
that wait when the worker dies are lost, as those of a lost connection.
"""

from __future__ import annotations

from typing import Any

from celery import bootsteps

SEND_EVERY = 0.25  # seconds
BUFFER_LIMIT = 500  # the most events that are collected before they are sent


class BatchEventsStep(bootsteps.StartStopStep):  # type: ignore[misc] # celery has no types
    """Makes the event dispatcher of a new connection collect task events."""

    requires = ("celery.worker.consumer.events:Events",)

    def start(self, consumer: Any) -> None:
        dispatcher = consumer.event_dispatcher
        if consumer.hub is None or dispatcher is None:  # other pools send each event at once
            return
        is_due = False

        def flush() -> None:
            nonlocal is_due
            is_due = False
            consumer.on_send_event_buffered()

        def flush_soon() -> None:
            nonlocal is_due
            if not is_due:
                is_due = True
                consumer.hub.call_later(SEND_EVERY, flush)

        dispatcher.buffer_limit = BUFFER_LIMIT
        dispatcher.on_send_buffered = flush_soon
