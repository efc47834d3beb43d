"""`kcm redis-cli`, with and without a client on the PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kcm.cli.redis_cli import address, format_reply, plain
from kcm.redisio import RedisIO
from kcm.redisio.raw import ErrorReply
from kcm.settings import Settings

ROOT = Path(__file__).parents[3]


def kcm(io: RedisIO, *args: str, path: str) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        "KCM_REDIS_URL": io.settings.effective_redis_url,
        "PATH": path,
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "kcm.cli.main", "redis-cli", *args]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


@pytest.fixture
def stub(tmp_path: Path) -> str:
    """Returns a folder with a redis-cli that prints its arguments, one on each line."""
    client = tmp_path / "redis-cli"
    client.write_text('#!/bin/sh\nprintf "%s\\n" "auth=$REDISCLI_AUTH" "$@"\n')
    client.chmod(0o755)
    return str(tmp_path)


def test_an_installed_client_gets_the_socket_and_every_argument_untouched(
    io: RedisIO, stub: str
) -> None:
    done = kcm(io, "XADD", "kcm:events", "*", "type", "--x", path=stub)
    socket = str(io.settings.effective_redis_url).removeprefix("unix://")
    assert done.stdout.splitlines() == [
        "auth=", "-s", socket, "XADD", "kcm:events", "*", "type", "--x",
    ]  # fmt: skip


@pytest.mark.skipif(shutil.which("redis-cli") is None, reason="needs redis-cli")
def test_a_real_client_works(io: RedisIO) -> None:
    done = kcm(io, "PING", path=os.environ["PATH"])
    assert done.stdout == "PONG\n"


def test_without_a_client_the_command_is_sent_and_the_reply_printed(io: RedisIO) -> None:
    added = kcm(io, "XADD", "kcm:events", "*", "type", "ADDED", path="/nonexistent")
    assert added.returncode == 0
    assert added.stdout.strip().endswith("-0")
    assert kcm(io, "XLEN", "kcm:events", path="/nonexistent").stdout == "1\n"


def test_without_a_client_an_error_reply_is_printed_with_exit_code_1(io: RedisIO) -> None:
    done = kcm(io, "XADD", path="/nonexistent")
    assert done.returncode == 1
    assert "wrong number of arguments" in done.stdout


def test_without_a_client_a_prompt_cannot_be_had(io: RedisIO) -> None:
    done = kcm(io, path="/nonexistent")
    assert done.returncode == 1
    assert "neither redis-cli nor valkey-cli is installed" in done.stderr


@pytest.mark.parametrize(
    ("url", "arguments", "secret"),
    [
        ("redis://h:7000/3", ["-h", "h", "-p", "7000", "-n", "3"], {}),
        (
            "rediss://me:a%40b@h",
            ["-h", "h", "-p", "6379", "--tls", "--user", "me"],
            {"REDISCLI_AUTH": "a@b"},
        ),
        ("unix://:pw@/run/r.sock", ["-s", "/run/r.sock"], {"REDISCLI_AUTH": "pw"}),
    ],
)
def test_the_address_keeps_the_password_out_of_the_arguments(
    url: str, arguments: list[str], secret: dict[str, str]
) -> None:
    assert address(Settings(redis_url=url)) == (arguments, secret)


@pytest.mark.parametrize(
    ("reply", "terminal", "pipe"),
    [
        (None, "(nil)", ""),
        (3, "(integer) 3", "3"),
        (b'a"b\n', '"a\\"b\\n"', 'a"b\n'),
        ([], "(empty array)", ""),
        ([b"a", [1, b"b"]], '1) "a"\n2) 1) (integer) 1\n   2) "b"', "a\n1\nb"),
        (ErrorReply("ERR no"), "(error) ERR no", "ERR no"),
        (b"\xff", '"\\xff"', "\udcff"),
    ],
)
def test_replies_look_as_redis_cli_prints_them(reply: object, terminal: str, pipe: str) -> None:
    assert format_reply(reply) == terminal
    assert plain(reply) == pipe
