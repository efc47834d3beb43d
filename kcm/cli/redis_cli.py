"""The command `kcm redis-cli`, which runs redis-cli or valkey-cli with kcm's address and password.

If neither is installed, kcm sends the command itself.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import click

from kcm import errors
from kcm.cli.connect import unavailable
from kcm.redisio import RedisIO, sentinel
from kcm.redisio.raw import ErrorReply, send_raw
from kcm.settings import Settings

CLIENTS = ("redis-cli", "valkey-cli")


@click.command(
    "redis-cli",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def redis_cli(args: tuple[str, ...]) -> None:
    """Send commands to kcm's Redis.

    Runs redis-cli or valkey-cli, if one is installed, with the right address
    and password and these arguments. Otherwise kcm sends the command itself
    and prints the reply in the same way.

    \b
    Examples:
      kcm redis-cli XLEN kcm:watch:pods
      kcm redis-cli XADD kcm:events '*' type DELETED object \\
        '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-x7k2p"}}'
      kcm redis-cli XINFO GROUPS kcm:events
    """
    settings = Settings()
    if not settings.redis_url and not settings.socket_path.exists():
        raise unavailable(settings, "no such socket")
    client = next(filter(None, map(shutil.which, CLIENTS)), None)
    if client is not None:
        where, environment = address(settings)
        sys.stdout.flush()
        os.execve(client, [Path(client).name, *where, *args], {**os.environ, **environment})
    if not args:
        raise errors.ConfigurationError(
            "neither redis-cli nor valkey-cli is installed: give the command as arguments, or "
            "install redis-tools for a prompt"
        )
    reply = send_raw(settings, args)
    click.echo(format_reply(reply) if sys.stdout.isatty() else plain(reply))
    if isinstance(reply, ErrorReply):
        raise SystemExit(1)


def address(settings: Settings) -> tuple[list[str], Mapping[str, str]]:
    """Returns redis-cli's arguments and environment variables for the server of the settings.

    The password is passed in the environment, since arguments are visible in `ps`.
    """
    url = settings.effective_redis_url
    if sentinel.is_sentinel(url):
        return _master_address(settings)
    parts = urlsplit(url)
    secret = {"REDISCLI_AUTH": unquote(parts.password)} if parts.password else {}
    user = ["--user", unquote(parts.username)] if parts.username else []
    if parts.scheme == "unix":
        return ["-s", parts.path, *user], secret
    tls = ["--tls"] if parts.scheme == "rediss" else []
    database = ["-n", parts.path.strip("/")] if parts.path.strip("/") else []
    place = ["-h", parts.hostname or "localhost", "-p", str(parts.port or 6379)]
    return [*place, *tls, *user, *database], secret


def _master_address(settings: Settings) -> tuple[list[str], Mapping[str, str]]:
    io = RedisIO(settings)
    try:
        pool: Any = io.driver.connection_pool
        host, port = pool.get_master_address()
    finally:
        io.close()
    url = sentinel.parse(settings.effective_redis_url)
    user, password = (url.credentials.get(name) for name in ("username", "password"))
    place = ["-h", str(host), "-p", str(port), *(["--tls"] if url.tls else [])]
    login = ["--user", user] if user else []
    database = ["-n", str(url.database)] if url.database else []
    return [*place, *login, *database], {"REDISCLI_AUTH": password} if password else {}


def plain(reply: Any) -> str:
    """Returns a reply as redis-cli prints it to a pipe."""
    if isinstance(reply, ErrorReply):
        return reply.text
    if isinstance(reply, list):
        return "\n".join(plain(item) for item in reply)
    return "" if reply is None else _text(reply)


def format_reply(reply: Any, indent: str = "") -> str:
    """Returns a reply as redis-cli prints it to a terminal."""
    if reply is None:
        return "(nil)"
    if isinstance(reply, ErrorReply):
        return f"(error) {reply.text}"
    if isinstance(reply, int):
        return f"(integer) {reply}"
    if isinstance(reply, list):
        return _format_list(reply, indent)
    return _quote(reply)


def _format_list(items: Sequence[Any], indent: str) -> str:
    if not items:
        return "(empty array)"
    width = len(str(len(items)))
    lines = []
    for number, item in enumerate(items, 1):
        label = f"{number:>{width}}) "
        lines.append(label + format_reply(item, indent + " " * len(label)))
    return f"\n{indent}".join(lines)


def _text(reply: bytes | str | int) -> str:
    return reply.decode("utf-8", "surrogateescape") if isinstance(reply, bytes) else str(reply)


def _quote(reply: bytes | str) -> str:
    if isinstance(reply, str):
        return reply
    escapes = {0x22: '\\"', 0x5C: "\\\\", 0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t"}
    shown = (
        escapes.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}")
        for byte in reply
    )
    return '"' + "".join(shown) + '"'
