"""Tests with deploy/redis that written data survives a kill of the server.

A server checks its ACL when it replays a transaction or a script from the append-only file, and
replays as user `default`: see deploy/redis/users.acl. Only Redis does so, not Valkey.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kcm import errors
from kcm.api.scheme import BUILT_IN
from kcm.cli.up import ready
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store
from tests.conftest import server_binary
from tests.new_objects import pod

pytestmark = pytest.mark.redis_only

DEPLOY = Path(__file__).parents[3] / "deploy" / "redis"
PODS = BUILT_IN.lookup("pods")


@contextmanager
def serve(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Starts a server on the data of `folder` as the composition does, and kills it at the end."""
    socket = folder / "r.sock"
    environment = {
        **os.environ,
        "KCM_WORKER_PASSWORD": "pw",
        "KCM_INJECTOR_PASSWORD": "pw",
        "KCM_FLOWER_REDIS_PASSWORD": "pw",
        "KCM_ACL_FILE": str(folder / "users.acl"),
        "KCM_REDIS_SERVER": server_binary(),
    }
    arguments = ["--port", "0", "--unixsocket", str(socket), "--dir", str(folder)]
    arguments += ["--logfile", str(folder / "log"), "--appendfsync", "always"]
    server = subprocess.Popen(["sh", str(DEPLOY / "start.sh"), *arguments], env=environment)
    try:
        ready.wait_for(socket.exists, 10, "the server", lambda: server.poll() is not None)
        yield server
    finally:
        server.kill()
        server.wait()
        socket.unlink(missing_ok=True)


def worker(folder: Path) -> RedisIO:
    return RedisIO(Settings(redis_url=f"unix://worker:pw@{folder}/r.sock"))


def dump(io: RedisIO) -> dict[str, Any]:
    """Returns the contents of every key that does not expire."""
    reads = {
        b"hash": ("HGETALL",),
        b"set": ("SMEMBERS",),
        b"list": ("LRANGE", 0, -1),
        b"zset": ("ZRANGE", 0, -1, "WITHSCORES"),
        b"stream": ("XRANGE", "-", "+"),
        b"string": ("GET",),
    }
    contents = {}
    for key in io.scan("kcm:*"):
        if io.execute("TTL", key) == -1 and key != io.keys.meta():
            command, *rest = reads[io.execute("TYPE", key)]
            contents[key] = io.execute(command, key, *rest)
    return contents


def test_scripts_and_transactions_outlive_a_killed_server(tmp_path: Path) -> None:
    with serve(tmp_path):
        io = worker(tmp_path)
        store = Store(io)
        for number in range(20):
            store.create(pod(f"p{number}"))
        store.delete(PODS, "default/p0")
        with io.driver.pipeline(transaction=True) as transaction:
            transaction.lpush(io.keys.broker_prefix() + "workloads", "a message")
            transaction.hset(io.keys.broker_prefix() + "unacked", "tag", "a message")
            transaction.execute()
        before = dump(io)
        io.close()
    with serve(tmp_path):
        after = dump(io)
        assert store.count(PODS) == 19
        assert after == before
        assert "NOPERM" not in (tmp_path / "log").read_text()
        io.close()


def test_the_default_user_is_still_refused(tmp_path: Path) -> None:
    with serve(tmp_path):
        for login in ("", "default:@", "default:x@"):
            io = RedisIO(Settings(redis_url=f"unix://{login}{tmp_path}/r.sock"))
            with pytest.raises(errors.KcmError):
                io.execute("GET", "kcm:rv")
            io.close()
