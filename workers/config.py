"""Celery's configuration, with the reason for each departure from its defaults.

The work queue in Redis is the record; a Celery message only wakes a worker and
may be lost, late or doubled (DESIGN D6, D16). So messages are acknowledged
before the task runs, nothing is prefetched beyond what runs, and there is no
result backend.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from kombu import Queue

from beat_schedule import TICKS_QUEUE, beat_schedule
from kcm.reconcile.contract import Controller
from kcm.settings import Settings

BROKER_HEALTH_CHECK_INTERVAL = 2  # seconds
MAX_MEMORY_PER_CHILD = 600_000  # KiB; a recycled child lists everything anew, so rarely


def broker_url(settings: Settings) -> str:
    """The settings' Redis in kombu's spelling."""
    url = settings.effective_redis_url
    if url.startswith("unix://"):
        rest = url.removeprefix("unix://")
        password, at, path = rest.rpartition("@")
        return f"redis+socket://{quote(password, safe=':')}{at}{path}"
    if url.startswith("sentinel://"):
        hosts, _, _ = url.removeprefix("sentinel://").partition("/")
        return ";".join(f"sentinel://{host}" for host in hosts.split(","))
    if url.startswith("rediss://") and "ssl_cert_reqs" not in url:
        # kombu would check no certificate, unlike our own connections.
        return f"{url}{'&' if '?' in url else '?'}ssl_cert_reqs=required"
    return url


def transport_options(settings: Settings) -> dict[str, Any]:
    """How kombu speaks to Redis: our key prefix, and no silence longer than the timeout."""
    options: dict[str, Any] = {
        "global_keyprefix": f"{settings.prefix}:celery:",
        "socket_timeout": settings.socket_timeout,
        "socket_connect_timeout": settings.connect_timeout,
        # Without these a worker stays deaf for minutes on a half-open link.
        # kombu looks once per interval, so silence is noticed after at most twice this.
        "health_check_interval": BROKER_HEALTH_CHECK_INTERVAL,
        "socket_keepalive": not settings.effective_redis_url.startswith("unix://"),
        "retry_on_timeout": True,
    }
    if settings.redis_url.startswith("sentinel://"):
        options["master_name"] = settings.redis_url.rpartition("/")[2]
    return options


def configuration(settings: Settings, controllers: Sequence[Controller]) -> dict[str, Any]:
    """Everything `app.conf` gets."""
    groups = {controller.group for controller in controllers}
    return {
        "broker_url": broker_url(settings),
        "broker_transport_options": transport_options(settings),
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,  # Redis may be away for long: never give up
        "broker_channel_error_retry": True,
        "result_backend": None,
        "task_ignore_result": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        "task_acks_late": False,
        "task_queues": [Queue(name, routing_key=name) for name in sorted({*groups, TICKS_QUEUE})],
        "task_default_queue": TICKS_QUEUE,
        "task_create_missing_queues": True,
        "task_store_errors_even_if_ignored": False,
        "worker_prefetch_multiplier": 1,
        "worker_max_memory_per_child": MAX_MEMORY_PER_CHILD,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "worker_proc_alive_timeout": 10.0,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "worker_enable_remote_control": True,  # Flower asks workers about themselves
        "beat_scheduler": "workers.beat:LeasedScheduler",
        "beat_max_loop_interval": 1.0,  # a beat notices within this that it leads
        "beat_schedule": beat_schedule(controllers),
        "timezone": "UTC",
    }
