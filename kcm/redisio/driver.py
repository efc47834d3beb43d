"""Clients of the driver, with kcm's time limits, retries and name."""

from __future__ import annotations

from typing import Any

import redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.driver_info import DriverInfo
from redis.retry import Retry

from kcm import __version__
from kcm.redisio import sentinel
from kcm.redisio.links import Links
from kcm.redisio.quick import QuickPool
from kcm.settings import Settings

RETRIES = 3  # within one call, 50 ms to 1 s apart: enough for a restart of the server

# What CLIENT LIST shows as lib-name and lib-ver. Without it, the driver would read the metadata of
# its installed package for each connection, which takes longer than to connect.
_DRIVER = DriverInfo(lib_version=redis.__version__).add_upstream_driver("kcm", __version__)


class _LinkRetry(Retry):
    """The driver's retry, but a timeout of one connection closes all idle ones."""

    def __init__(self, retries: int, links: Links) -> None:
        super().__init__(ExponentialWithJitterBackoff(base=0.05, cap=1.0), retries)
        self._links = links

    def call_with_retry(self, do: Any, fail: Any, *args: Any, **options: Any) -> Any:
        def drop_idle_links(error: Exception, *more: int) -> None:
            self._links.note_failure(error)
            fail(error, *more)

        return super().call_with_retry(do, drop_idle_links, *args, **options)


def connect(
    settings: Settings, name: str = "", retries: int = RETRIES, links: Links | None = None
) -> redis.Redis:
    """Returns a client for the URL of the settings, one of those with these links. Nothing is sent
    yet.

    Raises: ConfigurationError for a URL that cannot be used.
    """
    links = links or Links()
    options: dict[str, Any] = {
        "socket_timeout": settings.socket_timeout,
        "socket_connect_timeout": settings.connect_timeout,
        "health_check_interval": settings.health_check_interval,
        "retry": _LinkRetry(retries, links),
        "protocol": 2,
        "client_name": name or None,
        "driver_info": _DRIVER,
    }
    url = settings.effective_redis_url
    if sentinel.is_sentinel(url):
        client = sentinel.parse(url).connect(options, links)
    else:
        client = redis.Redis.from_pool(QuickPool.from_url(url, **options))
    links.add(client.connection_pool)
    return client
