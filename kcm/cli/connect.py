"""Connects commands to the store."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import structlog

from kcm import errors
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store
from kcm.store.definitions import Definitions


@contextmanager
def open_redis() -> Iterator[RedisIO]:
    """Yields an attached connection.

    Raises StoreUnavailable, whose message says which address was tried and how to start a server.
    """
    if not structlog.is_configured():
        structlog.configure(logger_factory=_standard_error)
    settings = Settings()
    if not settings.redis_url and not settings.socket_path.exists():
        raise unavailable(settings, "no such socket")
    io = RedisIO(settings)
    try:
        io.attach()
    except errors.StoreUnavailable as error:
        raise unavailable(settings, error.message) from error
    try:
        yield io
    finally:
        io.close()


@contextmanager
def open_store() -> Iterator[Store]:
    """Yields an attached store, with the custom kinds registered. Raises StoreUnavailable."""
    with open_redis() as io:
        store = Store(io)
        Definitions(store).refresh()
        yield store


def _standard_error(*_: Any) -> Any:
    """Returns the logger for commands, which writes to standard error.

    Standard output has only a command's results.
    """
    return structlog.PrintLogger(sys.stderr)


def unavailable(settings: Settings, why: str) -> errors.StoreUnavailable:
    """Returns the error for a Redis that does not respond. `why` is the reason."""
    place = printable_url(settings)
    if settings.redis_url:
        advice = "KCM_REDIS_URL names it"
    else:
        advice = (
            "`kcm up` starts one there; KCM_STATE_DIR names another state folder, "
            "KCM_REDIS_URL another server"
        )
    return errors.StoreUnavailable(f"Redis does not answer at {place} ({why}): {advice}")


def printable_url(settings: Settings) -> str:
    """Returns the path of the server's socket, or its URL without user and password."""
    parts = urlsplit(settings.effective_redis_url)
    if parts.scheme == "unix":
        return parts.path
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
