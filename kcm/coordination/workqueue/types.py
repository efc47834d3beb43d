"""The types of a work queue: leases, results and statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kcm.redisio import Fence


@dataclass(frozen=True)
class KeyLease:
    """The right to sync one key, until it is finished, reaped or not renewed in time."""

    queue: str
    key: str
    token: str
    failures: int  # rate-limited retries so far
    waited: float  # seconds between the add and the take
    fence: Fence  # the fence of every write of this sync
    renew_limit: float  # seconds after the take when renewal stops


def parse_leases(queue: str, running_key: str, taken: Sequence[str]) -> list[KeyLease]:
    """Returns the leases in the reply to a take, which is empty if no key was taken.

    `running_key` names the hash with the tokens of the queue's keys.
    """
    limit, *rest = taken or ("0",)
    return [
        KeyLease(
            queue=queue,
            key=key,
            token=token,
            failures=int(failures),
            waited=float(waited) / 1000,
            fence=Fence(running_key, key, token),
            renew_limit=int(limit) / 1000,
        )
        for key, token, failures, waited in zip(*[iter(rest)] * 4, strict=True)
    ]


class SyncStatus(StrEnum):
    """How the sync of a key ended. The comments are client-go's calls."""

    DONE = "done"  # Forget
    RETRY = "retry"  # AddRateLimited
    REQUEUE = "requeue"  # Forget, then AddAfter
    ABANDON = "abandon"  # not synced, as by a worker that shuts down; the key waits again


@dataclass(frozen=True)
class SyncResult:
    """The result of a sync, with the delay in seconds of a requeue."""

    result: SyncStatus
    delay: float = 0.0

    @classmethod
    def done(cls) -> SyncResult:
        """Returns the result of a sync that succeeded: the key's failures are forgotten."""
        return cls(SyncStatus.DONE)

    @classmethod
    def retry(cls) -> SyncResult:
        """Returns the result of a sync that failed: the key is requeued with a back-off."""
        return cls(SyncStatus.RETRY)

    @classmethod
    def requeue_after(cls, seconds: float) -> SyncResult:
        """Returns the result of a sync that succeeded, and whose key is requeued after a delay."""
        return cls(SyncStatus.REQUEUE, seconds)

    @classmethod
    def abandon(cls) -> SyncResult:
        """Returns the result of a sync that did not take place: the key waits as before."""
        return cls(SyncStatus.ABANDON)


@dataclass(frozen=True)
class Finished:
    """The answer to one finish."""

    lost: bool  # whether the lease was lost before, so that the result was ignored
    delay: float | None  # seconds until the key is due again, None if it is not


# Upper bounds in seconds, as upstream's ExponentialBuckets(10e-9, 10, 10).
# Source: staging/src/k8s.io/component-base/metrics/prometheus/workqueue/metrics.go,
# Kubernetes 1.33.
BUCKETS: tuple[float, ...] = tuple(float(f"1e{exponent}") for exponent in range(-8, 2))


@dataclass(frozen=True)
class LatencyHistogram:
    """Counts per bucket, not cumulative; the last bucket has everything above the bounds."""

    counts: tuple[int, ...]
    sum_seconds: float

    def cumulate(self) -> list[tuple[str, float]]:
        """Returns pairs of an upper bound and the count up to it, in Prometheus' form."""
        bounds = [*(repr(bound) for bound in BUCKETS), "+Inf"]
        total, pairs = 0, []
        for bound, count in zip(bounds, self.counts, strict=True):
            total += count
            pairs.append((bound, float(total)))
        return pairs


@dataclass(frozen=True)
class QueueStats:
    """The statistics of one queue at one moment. Ages and durations are in seconds."""

    name: str
    depth: int
    running: int
    delayed: int
    failing: int  # keys with a failure count
    oldest: float  # age of the key that waits longest
    unfinished: float  # sum of the ages of all syncs in progress
    longest: float  # age of the oldest sync in progress
    cap: int
    draining: bool
    adds: int
    retries: int
    reaped: int
    messages: int  # pushed to the broker
    lost_messages: int
    outstanding: int  # messages that no take has answered yet
    since_finish: float | None  # since the last finish; None before the first
    queue_duration: LatencyHistogram = field(repr=False)
    work_duration: LatencyHistogram = field(repr=False)


def parse_stats(reply: Sequence[str]) -> list[QueueStats]:
    """Returns the statistics in the reply of the script queue_stats, without its status word."""
    queues, i = [], 0
    while i < len(reply):
        end = i + 2 + 2 * int(reply[i + 1])
        pairs = reply[i + 2 : end]
        queues.append(_stats(reply[i], dict(zip(pairs[::2], pairs[1::2], strict=True))))
        i = end
    return queues


def _stats(name: str, raw: dict[str, str]) -> QueueStats:
    def count(field_name: str) -> int:
        return int(raw.get(field_name, 0))

    def seconds(field_name: str) -> float:
        return float(raw[field_name]) / 1000

    last = raw.get("last_finish")
    return QueueStats(
        name=name,
        depth=count("depth"),
        running=count("running"),
        delayed=count("delayed"),
        failing=count("failing"),
        oldest=seconds("oldest"),
        unfinished=seconds("unfinished"),
        longest=seconds("longest"),
        cap=count("cap"),
        draining=raw["draining"] == "1",
        adds=count("adds"),
        retries=count("retries"),
        reaped=count("reaped"),
        messages=count("messages"),
        lost_messages=count("lost_messages"),
        outstanding=count("outstanding"),
        since_finish=None if last is None else (int(raw["now"]) - int(last)) / 1000,
        queue_duration=_histogram("queue", raw),
        work_duration=_histogram("work", raw),
    )


def _histogram(name: str, raw: dict[str, str]) -> LatencyHistogram:
    counts = tuple(int(raw.get(f"{name}:{i}", 0)) for i in range(len(BUCKETS) + 1))
    return LatencyHistogram(counts, int(raw.get(f"{name}:us", 0)) / 1e6)
