"""The baselines: storing the same bytes by a tiny script, and no-op tasks of Celery."""

from __future__ import annotations

import time
from collections.abc import Sequence

import redis
from celery import Celery

from bench.harness import wait_for
from bench.stamps import StampReader
from kcm.redisio import RedisIO

_SET_XADD = """
redis.call('SET', KEYS[1], ARGV[1])
return redis.call('XADD', KEYS[2], '*', 'object', ARGV[1])
"""
_STREAM = "raw:stream"
BATCH = 128  # scripts per round trip, as many as the store writes items in one


class RawStore:
    """Stores bytes with SET and XADD, as fast as the Redis driver can."""

    def __init__(self, io: RedisIO) -> None:
        self._client: redis.Redis = io.driver
        self._sha = str(self._client.script_load(_SET_XADD))

    def create_all(self, objects: Sequence[bytes]) -> float:
        """Stores all objects in pipelined batches; returns the seconds that this took."""
        started = time.perf_counter()
        for start in range(0, len(objects), BATCH):
            with self._client.pipeline(transaction=False) as pipe:
                for number, data in enumerate(objects[start : start + BATCH], start):
                    pipe.evalsha(self._sha, 2, f"raw:object:{number}", _STREAM, data)
                pipe.execute()
        return time.perf_counter() - started

    def round_trip(self, data: bytes, number: int = 0) -> float:
        """Stores one object; returns the seconds that this took."""
        started = time.perf_counter()
        self._client.evalsha(self._sha, 2, f"raw:object:{number}", _STREAM, data)
        return time.perf_counter() - started

    def clear(self, count: int) -> None:
        """Removes the first `count` objects that `create_all` stored, and the stream."""
        for start in range(0, count, 1000):
            self._client.unlink(*(f"raw:object:{number}" for number in range(start, start + 1000)))
        self._client.unlink(_STREAM)


class RawTasks:
    """No-op tasks of `bench.programs.raw_app`, published through Celery's API."""

    def __init__(self, app: Celery, stamps: StampReader) -> None:
        self._app = app
        self._task = app.tasks["raw.noop"]
        self._stamps = stamps

    def run_all(self, count: int) -> float:
        """Publishes `count` tasks; returns the seconds until the last one has run."""
        self._stamps.reset()
        started = time.monotonic()
        with self._app.producer_pool.acquire(block=True) as producer:
            for number in range(count):
                self._task.apply_async((f"default/key-{number}",), producer=producer)
        wait_for(lambda: self._stamps.count() >= count, f"{count} raw tasks")
        return max(self._stamps.times()) - started

    def latency(self) -> float:
        """Publishes one task; returns the seconds until it starts."""
        self._stamps.reset()
        started = time.monotonic()
        with self._app.producer_pool.acquire(block=True) as producer:
            self._task.apply_async(("default/key",), producer=producer)
        wait_for(lambda: self._stamps.count() > 0, "a raw task", every=0.002)
        return self._stamps.times()[0] - started
