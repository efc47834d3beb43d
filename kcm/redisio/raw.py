"""Sends one command as a user typed it, and returns the reply as the server sent it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import redis

from kcm.redisio.driver import connect
from kcm.redisio.links import Links
from kcm.redisio.translation import translate_errors
from kcm.settings import Settings


@dataclass(frozen=True)
class ErrorReply:
    """An error reply of the server."""

    text: str


def send_raw(settings: Settings, command: Sequence[str]) -> Any:
    """Sends one command; returns bytes, int, None, lists of these, or an ErrorReply.

    There is no time limit, since the command may block. Raises: StoreUnavailable.
    """
    links = Links()
    with translate_errors(links):
        client = connect(settings, links=links)
        pool: Any = client.connection_pool
        pool.connection_kwargs["socket_timeout"] = None
        connection = pool.get_connection()
        try:
            connection.send_command(*command)
            return _plain(connection.read_response())
        except redis.exceptions.ResponseError as error:
            return ErrorReply(str(error))
        finally:
            connection.disconnect()


def _plain(reply: Any) -> Any:
    if isinstance(reply, redis.exceptions.ResponseError):  # an error within an array
        return ErrorReply(str(reply))
    return [_plain(item) for item in reply] if isinstance(reply, list) else reply
