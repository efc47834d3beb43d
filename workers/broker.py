"""Redis as Celery's broker, for workers and kubelets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from kombu import Exchange
from kombu.common import Broadcast
from kombu.transport import TRANSPORT_ALIASES

from kcm.settings import Settings

BROKER_HEALTH_CHECK_INTERVAL = 2  # seconds
TASKS = "kcm_tasks"  # the transport option with the names of the tasks
KUBELET_HOUSEKEEPING = "kcm.kubelet.housekeeping"  # the task and the exchange


def broker_url(settings: Settings) -> str:
    """Returns the settings' Redis as kombu writes it."""
    url = settings.effective_redis_url
    if url.startswith("unix://"):
        rest = url.removeprefix("unix://")
        password, at, path = rest.rpartition("@")
        return f"redis+socket://{quote(password, safe=':')}{at}{path}"
    if url.startswith("sentinel://"):
        hosts, _, _ = url.removeprefix("sentinel://").partition("/")
        return ";".join(f"sentinel://{host}" for host in hosts.split(","))
    if url.startswith("rediss://") and "ssl_cert_reqs" not in url:
        # kombu would check no certificate, unlike kcm's own connections.
        return f"{url}{'&' if '?' in url else '?'}ssl_cert_reqs=required"
    return url


# By name, since a process that makes no connection needs none of it.
TRANSPORT_ALIASES.update(
    redis="workers.transport:Transport",
    rediss="workers.transport:Transport",
    sentinel="workers.transport:SentinelTransport",
)


def transport_options(settings: Settings, tasks: Iterable[str] | None = None) -> dict[str, Any]:
    """Returns how kombu speaks to Redis: with kcm's key prefix, and no silence longer than the
    timeout.

    Messages for others than the `tasks` are dropped.
    """
    options: dict[str, Any] = {
        "global_keyprefix": f"{settings.prefix}:celery:",
        "socket_timeout": settings.socket_timeout,
        "socket_connect_timeout": settings.connect_timeout,
        # Without these a worker stays deaf for minutes on a half-open link. kombu looks once per
        # interval, so it notices silence after at most twice this.
        "health_check_interval": BROKER_HEALTH_CHECK_INTERVAL,
        "socket_keepalive": not settings.effective_redis_url.startswith("unix://"),
        "retry_on_timeout": True,
    }
    if tasks is not None:
        options[TASKS] = sorted(tasks)  # workers report it as JSON
    if settings.redis_url.startswith("sentinel://"):
        options["master_name"] = settings.redis_url.rpartition("/")[2]
    return options


def kubelet_fanout(node: str = "") -> Broadcast:
    """Returns a node's queue, which gets each message that is sent to all nodes."""
    name = KUBELET_HOUSEKEEPING
    exchange = Exchange(name, type="fanout", durable=False)
    # Named after the node: a new name at each start would leave the old one's binding behind.
    return Broadcast(name, queue=f"{name}.{node}", exchange=exchange, routing_key=name)
