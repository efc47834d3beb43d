"""A configured queue on an empty server, and functions that read its state."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kcm.coordination.workqueue import QueueConfig, WorkQueue
from kcm.redisio import RedisIO

Configure = Callable[..., WorkQueue]


@pytest.fixture
def configure(io: RedisIO) -> Configure:
    """Gives a function that configures a queue; fields that are not given have their defaults."""

    def make(name: str = "replicaset", **overrides: Any) -> WorkQueue:
        config = {"task": f"kcm.{name}.sync", "broker_queue": "controllers", **overrides}
        queue = WorkQueue(io, name)
        queue.configure(QueueConfig(**config))
        return queue

    return make


@pytest.fixture
def queue(configure: Configure) -> WorkQueue:
    return configure()


def messages(io: RedisIO, broker_queue: str = "controllers") -> list[dict[str, Any]]:
    """Returns the messages in the broker's list; the first is the next to be consumed."""
    raw = io.execute("LRANGE", io.keys.broker_prefix() + broker_queue, 0, -1)
    return [json.loads(message) for message in reversed(raw)]


def message_keys(io: RedisIO) -> list[str]:
    """Returns the key that each message names."""
    return [json.loads(message["body"])[0][0] for message in messages(io)]


def pop_message(io: RedisIO) -> str | None:
    """Consumes a message as a worker would; returns its key, or None without a message."""
    raw = io.execute("RPOP", io.keys.broker_prefix() + "controllers")
    return None if raw is None else str(json.loads(json.loads(raw)["body"])[0][0])


_READ = {
    b"string": ("GET",),
    b"hash": ("HGETALL",),
    b"set": ("SMEMBERS",),
    b"zset": ("ZRANGE", 0, -1, "WITHSCORES"),
    b"list": ("LRANGE", 0, -1),
}


def state(io: RedisIO) -> dict[str, Any]:
    """Returns the contents of every key, apart from the replies that are kept for repeated
    calls.
    """
    contents = {}
    for key in io.execute("KEYS", "*"):
        name = key.decode()
        if name.startswith(io.keys.call("")):
            continue
        command, *args = _READ[io.execute("TYPE", key)]
        contents[name] = io.execute(command, key, *args)
    return contents


def new_epoch(io: RedisIO) -> None:
    """Begins an epoch, as a restart of the server does; older tokens become invalid."""
    io.execute("HSET", io.keys.meta(), "run_id", "before-restart")
    io.attach()
