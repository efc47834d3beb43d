"""`python -m kcm.manager` as a process of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from kcm.redisio import RedisIO
from kcm.redisio.embedded import EmbeddedServer
from kcm.settings import Settings
from kcm.testing.waiting import until
from tests.ports import free_port

Begin = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def begin(server: EmbeddedServer) -> Iterator[Begin]:
    begun = []
    environ = {
        **os.environ,
        "KCM_REDIS_URL": server.url,
        "PYTHONPATH": str(Path(__file__).parents[3]),
    }

    def make(*flags: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "kcm.manager", *flags]
        pipe = subprocess.PIPE
        begun.append(subprocess.Popen(command, env=environ, stdin=pipe, stderr=pipe))
        return begun[-1]

    yield make
    for process in begun:
        process.kill()
        process.communicate()


def status(port: int, page: str) -> int:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/{page}").status_code
    except httpx.TransportError:
        return 0


@pytest.mark.parametrize("way", ["SIGTERM", "SIGINT", "stdin"])
def test_it_ends_cleanly(begin: Begin, way: str) -> None:
    port = free_port()
    process = begin(f"--secure-port={port}", "--stop-with-stdin")
    until(lambda: status(port, "readyz") == 200)
    if way == "stdin":
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    else:
        process.send_signal(getattr(signal, way))
    _, errors = process.communicate(timeout=15)
    assert process.returncode == 0, errors.decode()


def test_a_taken_port_ends_it_with_a_line_that_names_port_and_flag(begin: Begin) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        _, errors = begin(f"--secure-port={port}").communicate(timeout=60)
    last = errors.decode().strip().splitlines()[-1]
    assert last.startswith(f"Error: port {port} on 127.0.0.1 cannot be used")
    assert "--secure-port" in last


def test_the_flags_that_were_given_are_logged_at_the_start(begin: Begin) -> None:
    process = begin("--secure-port=0", "--stop-with-stdin", "--min-resync-period=90m")
    _, errors = process.communicate(b"", timeout=60)
    assert process.returncode == 0
    assert '--min-resync-period="1h30m0s"' in errors.decode()
    assert "--concurrent-replicaset-syncs" not in errors.decode()


def test_a_store_that_goes_away_later_does_not_end_it(begin: Begin, server: EmbeddedServer) -> None:
    port = free_port()
    process = begin(f"--secure-port={port}")
    until(lambda: status(port, "readyz") == 200)
    server.stop()
    until(lambda: status(port, "readyz") == 500)
    assert status(port, "healthz") == 200
    page = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=60).text
    assert "kcm_store_up 0.0" in page
    assert "kcm_build_info" in page
    server.start()
    until(lambda: status(port, "readyz") == 200)
    assert process.poll() is None
    io = RedisIO(_settings(server))
    until(lambda: bool(io.execute("HGET", io.keys.lease("ingest"), "holder")))
    io.close()


def test_elsewhere_it_speaks_tls_and_asks_for_a_token(begin: Begin, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    certificate, key, token = (str(tmp_path / name) for name in ("cert.pem", "key.pem", "token"))
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=kcm",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    Path(token).write_text("secret")
    port = free_port()
    begin(
        "--bind-address=0.0.0.0",
        f"--secure-port={port}",
        f"--tls-cert-file={certificate}",
        f"--tls-private-key-file={key}",
        f"--bearer-token-file={token}",
    )
    trust = ssl.create_default_context(cafile=certificate)
    address = f"https://127.0.0.1:{port}"

    def ask(page: str, **headers: str) -> int:
        try:
            return httpx.get(f"{address}/{page}", verify=trust, headers=headers).status_code
        except httpx.TransportError:
            return 0

    until(lambda: ask("readyz") == 200)
    assert ask("metrics") == 401
    assert ask("metrics", authorization="Bearer secret") == 200


def _settings(server: EmbeddedServer) -> Settings:
    return Settings(redis_url=server.url, state_dir=server.state_dir)
