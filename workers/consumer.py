"""Celery's consumer, with shorter pauses between attempts to connect."""

from __future__ import annotations

from functools import partial
from typing import Any

from celery.worker.consumer import Consumer

# Seconds before the second attempt, by how much each pause is longer, and the longest. Celery's are
# 2, 2 and 30: after a failover of a few seconds a worker would wait for four more.
FIRST, STEP, LONGEST = 0.5, 0.5, 2.0


class EagerConsumer(Consumer):  # type: ignore[misc] # celery has no types
    """Connects again soon after Redis is back."""

    def ensure_connected(self, conn: Any) -> Any:
        conn.ensure_connection = partial(
            conn.ensure_connection, interval_start=FIRST, interval_step=STEP, interval_max=LONGEST
        )
        return super().ensure_connected(conn)
