"""Flower: login, read-only, on the loopback only, with readable arguments."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from kcm.cli import commandlines
from kcm.cli.up import ready
from kcm.redisio import RedisIO
from tests.ports import free_port

ROOT = Path(__file__).parents[3]


@pytest.fixture
def flower(io: RedisIO, tmp_path: Path) -> Iterator[httpx.Client]:
    """Yields a client of a real Flower, logged in. Its state folder is tmp_path."""
    port = free_port()
    env = {
        **os.environ,
        "KCM_REDIS_URL": io.settings.effective_redis_url,
        "KCM_STATE_DIR": str(tmp_path),
        "KCM_FLOWER_PORT": str(port),
        "PYTHONPATH": str(ROOT),
    }
    log = (tmp_path / "flower.log").open("wb")
    process = subprocess.Popen(commandlines.flower(), env=env, stdout=log, stderr=log)
    try:
        answers = ready.http_answers(port, "/healthcheck")
        ready.wait_for(answers, 30, "Flower", lambda: process.poll() is not None)
        password = (tmp_path / "flower-password").read_text().strip()
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", auth=("kcm", password), timeout=10
        ) as client:
            yield client
    finally:
        process.terminate()
        process.wait(10)
        log.close()


def control_paths() -> list[str]:
    """Returns every path of Flower that accepts a POST, except its table and its login."""
    from flower.urls import handlers

    paths = []
    for handler in handlers:
        pattern, kind = (handler[0], handler[1]) if isinstance(handler, tuple) else (
            handler.regex.pattern, handler.handler_class
        )  # fmt: skip
        if pattern == ".*":  # answers 404
            continue
        if "post" in vars(kind) and "/login" not in pattern and "datatable" not in pattern:
            paths.append(pattern.rstrip("$").replace("(.+)", "worker@x").replace("(.*)", "x"))
    return paths


def test_flower_asks_for_a_login_refuses_control_and_listens_on_loopback(
    flower: httpx.Client, tmp_path: Path
) -> None:
    url = str(flower.base_url)
    for path in ("/", "/tasks", "/broker", "/api/workers", "/api/tasks"):
        assert httpx.get(url + path).status_code == 401, path
        assert httpx.get(url + path, auth=("kcm", "wrong")).status_code == 401, path
        assert flower.get(path).status_code == 200, path
    for header in ("Basic w7w6w7w=", "Basic /////w==", "Basic", "Basic :", "Bearer x", "\xff"):
        answer = httpx.get(url + "/", headers={b"Authorization": header.encode("latin-1")})
        assert answer.status_code == 401, header

    paths = control_paths()
    assert len(paths) >= 14
    for path in paths:
        answer = flower.post(path, json={"args": ["default/web"]})
        assert (answer.status_code, answer.text) == (403, "Read only mode is enabled"), path

    assert (tmp_path / "flower-password").stat().st_mode & 0o777 == 0o600
    command = " ".join(commandlines.flower())
    assert (tmp_path / "flower-password").read_text().strip() not in command
    port = flower.base_url.port
    with socket.socket() as elsewhere, pytest.raises(OSError, match="refused"):
        elsewhere.connect(("127.0.0.2", port))


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        ("('default/web',)", "default/web"),
        ("['default/web']", "default/web"),
        ("('podgc', 1.5)", "podgc, 1.5"),
        ("default/web +7", "default/web +7"),
        ("", ""),
        (["a", 1], "a, 1"),
        (None, ""),
    ],
)
def test_arguments_are_shown_in_words(args: object, shown: str) -> None:
    from workers.flowersettings import format_arguments

    assert format_arguments(args) == shown


def test_the_password_may_come_from_the_environment(tmp_path: Path) -> None:
    program = "from workers.flowersettings import load_password; print(load_password())"
    env = {
        **os.environ,
        "KCM_FLOWER_PASSWORD": "given",
        "KCM_STATE_DIR": str(tmp_path),
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == "given\n"
    assert not (tmp_path / "flower-password").exists()
