"""`python -m kcm.apiserver` as a process."""

from __future__ import annotations

import signal
import socket
import stat
import subprocess
from pathlib import Path

from kcm.redisio.embedded import EmbeddedServer
from tests.integration.apiserver.process import command, environment, start


def test_a_process_serves_with_the_credentials_it_wrote_and_stops_with_open_watches(
    redis_server: EmbeddedServer, tmp_path: Path
) -> None:
    with start(redis_server, tmp_path) as (process, client):
        body = client.get("/api/v1/namespaces").json()
        names = [item["metadata"]["name"] for item in body["items"]]
        assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]
        for name in ("kubeconfig", "apiserver-token", "apiserver.key"):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
        with client.stream("GET", "/api/v1/pods", params={"watch": "1"}) as watch:
            process.send_signal(signal.SIGTERM)
            assert list(watch.iter_lines()) == []
        # Of itself: what uvicorn caught it raises again once everything has ended.
        assert process.wait(10) in {0, -signal.SIGTERM}


def test_a_taken_port_is_told_with_its_flag(redis_server: EmbeddedServer, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            command("--port", str(port)), env=environment(redis_server, tmp_path),
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert f"error: port {port} on 127.0.0.1 cannot be used" in done.stderr
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "kubeconfig").exists()


def test_anonymous_plain_http_is_a_choice(redis_server: EmbeddedServer, tmp_path: Path) -> None:
    flags = ("--no-tls", "--anonymous-auth", "--authorization-mode", "AlwaysAllow")
    with start(redis_server, tmp_path, *flags) as (_, client):
        del client.headers["authorization"]
        assert client.get("/api/v1/pods").status_code == 200
