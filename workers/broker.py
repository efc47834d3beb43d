"""Redis as Celery's broker, for workers and kubelets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from kombu import Exchange
from kombu.common import Broadcast
from kombu.transport import TRANSPORT_ALIASES

from kcm.redisio import sentinel
from kcm.settings import Settings

BROKER_HEALTH_CHECK_INTERVAL = 2  # seconds
TASKS = "kcm_tasks"  # the transport option with the names of the tasks
KUBELET_HOUSEKEEPING = "kcm.kubelet.housekeeping"  # the task and the exchange


def broker_url(settings: Settings) -> str:
    """Returns the URL of the settings' Redis in kombu's form."""
    url = settings.effective_redis_url
    if url.startswith("unix://"):
        rest = url.removeprefix("unix://")
        password, at, path = rest.rpartition("@")
        return f"redis+socket://{quote(password, safe=':')}{at}{path}"
    if sentinel.is_sentinel(url):
        return sentinel.parse(url).broker_url()
    if url.startswith("rediss://") and "ssl_cert_reqs" not in url:
        # kombu would check no certificate, unlike kcm's own connections.
        return f"{url}{'&' if '?' in url else '?'}ssl_cert_reqs=required"
    return url


# By name, since a process without connections does not need the module.
TRANSPORT_ALIASES.update(
    redis="workers.transport:Transport",
    rediss="workers.transport:Transport",
    sentinel="workers.transport:SentinelTransport",
)


def transport_options(settings: Settings, tasks: Iterable[str] | None = None) -> dict[str, Any]:
    """Returns kombu's options for Redis: kcm's key prefix, and the same timeouts.

    Messages for other tasks than `tasks` are handed back, and in the end dropped; with None they
    are not checked for that.
    """
    options: dict[str, Any] = {
        "global_keyprefix": f"{settings.prefix}:celery:",
        "socket_timeout": settings.socket_timeout,
        "socket_connect_timeout": settings.connect_timeout,
        # Without these a worker gets no messages for minutes over a half-open connection. kombu
        # checks once per interval, so it notices that after at most two intervals.
        "health_check_interval": BROKER_HEALTH_CHECK_INTERVAL,
        "socket_keepalive": not settings.effective_redis_url.startswith("unix://"),
        # The driver repeats no command: `retry_on_timeout` would do so for lost connections, too.
        # kombu subscribes again when it is told that the connection was lost; over a new one that
        # it was not told of, a worker would wait for messages for ever.
    }
    if tasks is not None:
        options[TASKS] = sorted(tasks)  # workers report it as JSON
    if sentinel.is_sentinel(settings.redis_url):
        parsed = sentinel.parse(settings.redis_url)
        options["master_name"] = parsed.service
        options["sentinel_kwargs"] = parsed.sentinel_options(options)
    return options


def broker_tls(settings: Settings) -> dict[str, Any] | None:
    """Returns Celery's `broker_use_ssl`, which kombu needs where the URL cannot say it."""
    if not sentinel.is_sentinel(settings.redis_url):
        return None
    tls = dict(sentinel.parse(settings.redis_url).tls)
    tls.pop("ssl", None)
    return (tls and {"ssl_cert_reqs": "required", **tls}) or None


def kubelet_fanout(node: str = "") -> Broadcast:
    """Returns a node's queue, which gets each message that is sent to all nodes."""
    name = KUBELET_HOUSEKEEPING
    exchange = Exchange(name, type="fanout", durable=False)
    # Named after the node, since a new name at each start would leave the old binding behind.
    return Broadcast(name, queue=f"{name}.{node}", exchange=exchange, routing_key=name)
