"""Checks that report whether the store, dispatch, workers, nodes and HTTP servers are ready."""

from __future__ import annotations

import http.client
import ssl
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from kcm import errors
from kcm.redisio import RedisIO
from kcm.settings import Settings

_PAUSE = 0.02  # seconds between attempts
STORE_TIMEOUT = 60.0  # seconds; a large append-only file takes a while to load
START_TIMEOUT = 30.0  # seconds for workers and Flower; a machine may be busy

Check = Callable[[], bool]


def wait_for(check: Check, timeout: float, what: str, between: Callable[[], bool]) -> bool:
    """Calls `check` until it returns True. Returns False if `between` asks to give up.

    Raises KcmError after `timeout` seconds, and what `between` raises.
    """
    deadline = time.monotonic() + timeout
    while not check():
        if between():
            return False
        if time.monotonic() >= deadline:
            raise errors.KcmError(f"{what} did not become ready within {timeout:g} s")
        time.sleep(_PAUSE)
    return True


def store_answers(settings: Settings) -> Check:
    """Returns a check that the server responds to PING."""

    def check() -> bool:
        if not settings.redis_url and not settings.socket_path.exists():
            return False
        io = RedisIO(settings)
        try:
            io.execute("PING")
        except errors.StoreUnavailable:
            return False
        finally:
            io.close()
        return True

    return check


def dispatch_tokens(io: RedisIO, resources: Sequence[str]) -> list[str]:
    """Returns the fencing tokens of the kinds' dispatch leases, "" for a lease without a holder."""
    commands = [("HGET", io.keys.lease(f"dispatch:{name}"), "token") for name in resources]
    return [value.decode() if value else "" for value in io.pipeline(commands)]


def dispatches(io: RedisIO, resource: str, before: str) -> Check:
    """Returns a check that a manager dispatches whose token is not `before`."""

    def check() -> bool:
        token = dispatch_tokens(io, [resource])[0]
        return bool(token) and token != before

    return check


def workers_listen(io: RedisIO, count: int) -> Check:
    """Returns a check that `count` workers wait for messages of the broker."""

    def check() -> bool:
        clients: list[dict[str, str]] = io.execute("CLIENT LIST")
        return sum(client["cmd"] == "brpop" for client in clients) >= count

    return check


def nodes_registered(io: RedisIO, count: int) -> Check:
    """Returns a check that at least `count` nodes are registered."""
    return lambda: int(io.execute("ZCARD", io.keys.object_keys("nodes"))) >= count


def node_registered(io: RedisIO, name: str) -> Check:
    """Returns a check that the node of this name is registered."""
    return lambda: io.execute("ZSCORE", io.keys.object_keys("nodes"), name) is not None


def http_answers(port: int, path: str) -> Check:
    """Returns a check that a page of a server on this machine has the code 200."""
    return lambda: _answers(http.client.HTTPConnection("127.0.0.1", port, timeout=1.0), path)


def https_answers(port: int, path: str, certificate: Path) -> Check:
    """Returns a check that a page of a TLS server on this machine has the code 200.

    It trusts only `certificate`, and fails while that file does not exist.
    """

    def check() -> bool:
        if not certificate.exists():
            return False
        trust = ssl.create_default_context(cafile=str(certificate))
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=1.0, context=trust)
        return _answers(connection, path)

    return check


def _answers(connection: http.client.HTTPConnection, path: str) -> bool:
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
