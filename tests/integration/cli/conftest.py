"""Runs commands in this process, against a real Redis server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kcm.cli.main import main
from kcm.redisio import RedisIO
from kcm.store import Store

Run = Callable[..., Result]


@pytest.fixture
def store(io: RedisIO) -> Store:
    return Store(io)


@pytest.fixture
def run(io: RedisIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Returns a function that runs `kcm` with arguments. `stdin` is its standard input.

    The state folder is an empty one, whatever runs in this folder.
    """
    monkeypatch.delenv("KCM_DEBUG", raising=False)
    monkeypatch.setenv("KCM_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("KCM_REDIS_URL", io.settings.effective_redis_url)

    def invoke(*args: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(main, list(args), input=stdin)

    return invoke
