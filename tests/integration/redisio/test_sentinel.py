"""Redis behind Sentinel, with users, passwords and TLS, as its URL names it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import redis

from kcm.apiserver.auth.attributes import User
from kcm.apiserver.auth.authorizer import AuthorizerDecision
from kcm.apiserver.heavy.processes import HeavyProcesses
from kcm.apiserver.heavy.requests import HeavyWrite
from kcm.apiserver.request import Request
from kcm.cli.redis_cli import address
from kcm.redisio import RedisIO, sentinel
from kcm.settings import Settings
from kcm.testing.waiting import until
from tests.conftest import server_binary
from tests.integration.apiserver.authority import Authority
from tests.ports import free_port

ALLOWED = AuthorizerDecision(True)
PASSWORD, SENTINEL_PASSWORD = "p@ss:w%rd/", "s3nt!nel"
MASTER = f"""
save ""
user default off resetpass ~* &* +@all
user worker on >{PASSWORD} ~* &* +@all
"""
SENTINEL = f"""
sentinel monitor kcm 127.0.0.1 PORT 1
sentinel auth-user kcm worker
sentinel auth-pass kcm {PASSWORD}
user default off
user asker on >{SENTINEL_PASSWORD} ~* &* +@all
"""


@dataclass(frozen=True)
class Guarded:
    """A master with its sentinel, and the settings that lead there."""

    settings: Settings
    master_port: int
    sentinel_port: int


@contextmanager
def running(
    folder: Path, name: str, configuration: str, *flags: str
) -> Iterator[subprocess.Popen[bytes]]:
    file = folder / f"{name}.conf"
    file.write_text(f"{configuration}\nbind 127.0.0.1\ndir {folder}\n")
    process = subprocess.Popen([server_binary(), str(file), *flags], stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(10)


def ports(port: int, tls: str) -> str:
    return f"port 0\ntls-port {port}\n{tls}" if tls else f"port {port}"


@pytest.fixture(scope="module", params=["plain", "tls"])
def guarded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("sentinel")
    tls = options = ""
    if request.param == "tls":
        authority = Authority(folder)
        certificate, key = authority.server("127.0.0.1", "localhost")
        tls = (
            f"tls-cert-file {certificate}\ntls-key-file {key}\ntls-ca-cert-file {authority.path}\n"
            "tls-auth-clients no\ntls-replication yes"
        )
        options = f"&ssl_ca_certs={authority.path}"
    master, port, dead = free_port(), free_port(), free_port()
    scheme = "rediss+sentinel" if tls else "sentinel"
    login = f"worker:{quote(PASSWORD, safe='')}"
    query = f"sentinel_username=asker&sentinel_password={quote(SENTINEL_PASSWORD)}{options}"
    url = f"{scheme}://{login}@127.0.0.1:{dead},127.0.0.1:{port}/kcm/3?{query}"
    settings = Settings(redis_url=url)
    with ExitStack() as stack:
        server = stack.enter_context(running(folder, "master", MASTER + ports(master, tls)))
        text = SENTINEL.replace("PORT", str(master)) + ports(port, tls)
        stack.enter_context(running(folder, "sentinel", text, "--sentinel"))
        io = RedisIO(settings, patient=False)

        def is_found() -> bool:
            with suppress(redis.RedisError):
                return bool(io.driver.ping())
            return server.poll() is not None

        until(is_found, "the master, as the sentinel names it")
        if tls and server.poll() is not None:
            pytest.skip("this server was built without TLS")
        yield Guarded(settings, master, port)
        io.close()


def test_the_master_is_found_with_every_part_of_the_url(guarded: Guarded) -> None:
    io = RedisIO(guarded.settings)
    assert io.driver.acl_whoami() == "worker"
    assert io.driver.client_info()["db"] == 3
    io.close()


def test_celery_finds_the_same_master(guarded: Guarded) -> None:
    from celery import Celery

    from workers.broker import broker_tls, broker_url, transport_options

    app = Celery(set_as_current=False, broker=broker_url(guarded.settings))
    app.conf.broker_transport_options = transport_options(guarded.settings)
    app.conf.broker_use_ssl = broker_tls(guarded.settings)
    with app.connection() as connection:
        queue = connection.SimpleQueue("workloads")
        queue.put({"key": "default/web"})
        message = queue.get(timeout=5)
        message.ack()
        assert message.payload == {"key": "default/web"}
        queue.close()
    io = RedisIO(guarded.settings)
    assert io.execute("EXISTS", "kcm:celery:_kombu.binding.workloads")
    io.close()


def test_the_child_process_of_an_api_server_listens_to_the_sentinel(guarded: Guarded) -> None:
    node = ("127.0.0.1", guarded.sentinel_port)
    options = sentinel.parse(guarded.settings.redis_url or "").sentinel_options({})
    asked = redis.Redis(*node, **options)
    write = HeavyWrite(Request("GET", "/api/v1/pods", b"", {}), User("jane"), ALLOWED)
    children = HeavyProcesses(guarded.settings, 1)
    assert children.write(write).code == 405
    until(lambda: len(asked.client_list(_type="pubsub")) == 1, "the child listens")
    children.close()
    until(lambda: not asked.client_list(_type="pubsub"), "it has gone")
    asked.close()


def test_redis_cli_is_led_to_the_master(guarded: Guarded) -> None:
    arguments, environment = address(guarded.settings)
    assert arguments[:4] == ["-h", "127.0.0.1", "-p", str(guarded.master_port)]
    assert arguments[-4:] == ["--user", "worker", "-n", "3"]
    assert environment == {"REDISCLI_AUTH": PASSWORD}


def test_sentinels_are_asked_within_the_time_limits_of_the_settings(guarded: Guarded) -> None:
    limits = {"socket_timeout": 1.5, "connect_timeout": 0.5}
    client = RedisIO(guarded.settings.model_copy(update=limits)).driver
    pool: Any = client.connection_pool
    for each in pool.sentinel_manager.sentinels:
        options = each.connection_pool.connection_kwargs
        assert (options["socket_timeout"], options["socket_connect_timeout"]) == (1.5, 0.5)
    client.close()
