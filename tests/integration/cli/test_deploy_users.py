"""The ACL users of deploy/redis, on a server that kcm's start script has started."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kcm import errors
from kcm.cli.up import ready
from kcm.redisio import RedisIO
from kcm.redisio.checks import check_server
from kcm.settings import Settings
from kcm.store import Store
from kcm.store.watch import Retention, trim
from kcm.testing import builders
from tests.conftest import server_binary
from workers.flowersettings import run_no_scripts
from workers.transport import ScriptRights

START = Path(__file__).parents[3] / "deploy" / "redis" / "start.sh"
PASSWORDS = {
    "KCM_WORKER_PASSWORD": "pw-worker",
    "KCM_INJECTOR_PASSWORD": "pw-injector",
    "KCM_FLOWER_REDIS_PASSWORD": "pw-flower",
    "KCM_ADMIN_PASSWORD": "pw-admin",
    "KCM_REPLICA_PASSWORD": "pw-replica",
}


@pytest.fixture(scope="module")
def socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("acl")
    socket = folder / "r.sock"
    env = {
        **os.environ,
        **PASSWORDS,
        "KCM_ACL_FILE": str(folder / "users.acl"),
        "KCM_REDIS_SERVER": server_binary(),
    }
    arguments = ["--port", "0", "--unixsocket", str(socket), "--dir", str(folder)]
    server = subprocess.Popen(["sh", str(START), *arguments], env=env, stdout=subprocess.DEVNULL)
    ready.wait_for(socket.exists, 10, "the server", lambda: server.poll() is not None)
    yield socket
    server.terminate()
    server.wait(5)


def as_user(socket: Path, name: str) -> RedisIO:
    return RedisIO(Settings(redis_url=f"unix://{name}:pw-{name}@{socket}"))


def expect_refusal(io: RedisIO, *command: str) -> None:
    with pytest.raises(errors.KcmError, match=r"(?i)no permission"):
        io.execute(*command)


def test_no_password_stands_in_the_acl_file(socket: Path) -> None:
    text = (socket.parent / "users.acl").read_text()
    assert "pw-" not in text
    assert "@" not in re.sub(r"[+-]@\w+", "", text)  # categories
    assert (socket.parent / "users.acl").stat().st_mode & 0o077 == 0


def test_a_password_must_be_given() -> None:
    done = subprocess.run(
        ["sh", str(START)], env={"PATH": os.environ["PATH"]}, capture_output=True, check=False
    )
    assert done.returncode != 0
    assert b"KCM_WORKER_PASSWORD" in done.stderr


def test_nobody_comes_in_without_a_user(socket: Path) -> None:
    with pytest.raises(errors.KcmError):
        RedisIO(Settings(redis_url=f"unix://{socket}")).execute("GET", "kcm:rv")


def test_a_worker_can_do_all_that_kcm_does_under_its_prefix(socket: Path) -> None:
    io = as_user(socket, "worker")
    io.attach()
    assert check_server(io) == []
    store = Store(io)
    pod = store.create(builders.pod("a").with_metadata(resource_version=None))
    assert store.get(pod.resource, pod.key).uid == pod.uid
    expect_refusal(io, "SET", "other:key", "1")
    expect_refusal(io, "FLUSHALL")
    expect_refusal(io, "CONFIG", "GET", "*")
    expect_refusal(io, "FUNCTION", "FLUSH")
    expect_refusal(io, "SCRIPT", "FLUSH")
    for command in ("DEL", "UNLINK"):
        for key in ("kcm:events", "kcm:meta", "kcm:rv", "kcm:watch:pods", "kcm:keys:pods"):
            expect_refusal(io, command, key)
    expect_refusal(io, "XTRIM", "kcm:events", "MAXLEN", "0")
    trim(io, [pod.resource], Retention(entries=0))
    store.delete(pod.resource, pod.key)


def test_an_injector_can_add_events_and_nothing_else(socket: Path) -> None:
    io = as_user(socket, "injector")
    assert io.execute("XADD", "kcm:events", "*", "type", "ADDED", "object", "{}")
    expect_refusal(io, "XADD", "kcm:watch:pods", "*", "type", "ADDED", "object", "{}")
    expect_refusal(io, "XRANGE", "kcm:events", "-", "+")
    expect_refusal(io, "GET", "kcm:rv")
    expect_refusal(io, "EVAL", "return 1", "0")
    expect_refusal(io, "PUBLISH", "kcm:celery:/0.celery.pidbox", "x")


def test_flower_sees_the_brokers_keys_only(socket: Path) -> None:
    io = as_user(socket, "flower")
    assert io.execute("LLEN", "kcm:celery:workloads") == 0
    expect_refusal(io, "HGETALL", "kcm:object:pods:default/a")
    expect_refusal(io, "XADD", "kcm:events", "*", "type", "ADDED", "object", "{}")
    expect_refusal(io, "EVAL", "return 1", "0")
    expect_refusal(io, "SCRIPT", "KILL")
    expect_refusal(io, "FUNCTION", "FLUSH")


def test_an_administrator_may_do_everything(socket: Path) -> None:
    io = as_user(socket, "admin")
    assert io.execute("CONFIG", "GET", "maxmemory")
    assert io.execute("SLOWLOG", "LEN") >= 0


def test_a_replica_may_follow_and_read_nothing(socket: Path) -> None:
    io = as_user(socket, "replica")
    assert io.execute("REPLCONF", "listening-port", "1")
    expect_refusal(io, "GET", "kcm:rv")


def test_a_user_without_a_password_cannot_log_in(socket: Path) -> None:
    with pytest.raises(errors.KcmError, match=r"(?i)invalid username-password"):
        as_user(socket, "sentinel").execute("PING")


def celery_as(socket: Path, name: str) -> Any:
    from celery import Celery

    from workers.broker import broker_url, transport_options

    settings = Settings(redis_url=f"unix://{name}:pw-{name}@{socket}")
    app = Celery(set_as_current=False, broker=broker_url(settings))
    app.conf.broker_transport_options = transport_options(settings)
    return app


def test_celery_sends_and_receives_as_worker(socket: Path) -> None:
    with celery_as(socket, "worker").connection() as connection:
        queue = connection.SimpleQueue("workloads")
        queue.put({"key": "default/web"})
        message = queue.get(timeout=5)
        message.ack()
        assert message.payload == {"key": "default/web"}
        queue.close()


def test_flower_may_ask_workers_and_listen_to_their_events(
    socket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScriptRights, "granted", True)
    run_no_scripts()
    app = celery_as(socket, "flower")
    assert app.control.ping(timeout=0.2) == []
    with app.connection() as connection:
        receiver = app.events.Receiver(connection)
        with receiver.consumer_context(), contextlib.suppress(TimeoutError):
            connection.drain_events(timeout=0.2)
