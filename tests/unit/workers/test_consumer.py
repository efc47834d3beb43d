"""Tests how soon a worker connects again."""

from __future__ import annotations

from typing import Any

from workers.app import create_app
from workers.consumer import FIRST, LONGEST, STEP, EagerConsumer


class Broker:
    """What Celery asks of a connection that it wants established."""

    alt = None

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}

    def ensure_connection(self, *_: Any, **options: Any) -> Broker:
        self.options = options
        return self


def test_a_worker_pauses_shortly_between_attempts_to_connect() -> None:
    app = create_app()
    assert app.WorkController(pool_cls="solo").consumer_cls == "workers.consumer:EagerConsumer"
    consumer = object.__new__(EagerConsumer)
    consumer.app, consumer.first_connection_attempt = app, False
    broker = Broker()
    consumer.ensure_connected(broker)
    pauses = {name: broker.options[f"interval_{name}"] for name in ("start", "step", "max")}
    assert pauses == {"start": FIRST, "step": STEP, "max": LONGEST}
