"""The settings of one work queue."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kcm import errors

RENEW_EVERY = 1.0  # seconds between renewals of held keys


@dataclass(frozen=True)
class QueueConfig:
    """The settings of one queue. All processes that configure it should agree.

    Raises: ConfigurationError for values that do not fit together.
    """

    task: str  # the Celery task that a message starts, with the key as its argument
    broker_queue: str  # the Celery queue of the messages
    cap: int = 0  # the most keys in flight, over all workers; 0: no limit
    claim: int = 8  # the most keys that one run takes when many wait
    threshold: int = 16  # up to this number of waiting keys, each key gets a message of its own
    lease: float = 4.0  # seconds until a key is taken from a worker that does not renew its lease
    renew_limit: float = 30.0  # seconds after the take when renewal stops
    base_delay: float = 0.005  # seconds before the first retry; each failure doubles them
    max_delay: float = 1000.0  # the longest delay of a key, in seconds
    qps: float = 10.0  # retries per second of all keys, from a token bucket
    burst: int = 100  # the most retries at once
    stall: float = 2.0  # seconds that a key waits before its message counts as lost

    def __post_init__(self) -> None:
        for wrong, words in self._checks():
            if wrong:
                raise errors.ConfigurationError(f"work queue of task {self.task!r}: {words}")

    def _checks(self) -> list[tuple[bool, str]]:
        return [
            (not self.task, "task must not be empty"),
            (not self.broker_queue, "broker_queue must not be empty"),
            (self.cap < 0, f"cap {self.cap} must not be negative (0: no limit)"),
            (self.claim < 1, f"claim {self.claim} must be at least 1"),
            (self.threshold < 1, f"threshold {self.threshold} must be at least 1"),
            (
                not self.lease >= 2 * RENEW_EVERY,
                f"lease {self.lease} s must be at least twice the {RENEW_EVERY} s between renewals",
            ),
            (
                not self.lease <= self.renew_limit < math.inf,
                f"renew_limit {self.renew_limit} s must be at least the lease of {self.lease} s",
            ),
            (
                not 0 < self.base_delay <= self.max_delay < math.inf,
                f"base_delay {self.base_delay} s must be above 0 and at most max_delay "
                f"{self.max_delay} s",
            ),
            (not 0 < self.qps < math.inf, f"qps {self.qps} must be greater than 0"),
            (self.burst < 1, f"burst {self.burst} must be at least 1"),
            (not 0 < self.stall < math.inf, f"stall {self.stall} s must be greater than 0"),
        ]

    def fields(self, broker_prefix: str) -> dict[str, str | int | float]:
        """Returns the fields for the script: times in milliseconds, and the full name of the
        broker's list.
        """
        return {
            "task": self.task,
            "list": broker_prefix + self.broker_queue,
            "routing_key": self.broker_queue,
            "cap": self.cap,
            "claim": self.claim,
            "threshold": self.threshold,
            "lease": round(self.lease * 1000),
            "renew_limit": round(self.renew_limit * 1000),
            "base_delay": self.base_delay * 1000,
            "max_delay": self.max_delay * 1000,
            "qps": self.qps,
            "burst": self.burst,
            "stall": round(self.stall * 1000),
        }
