"""Celery's configuration, with the reason for each departure from its defaults.

The state of the work is in the work queue in Redis. A Celery message only wakes a worker and may be
lost, late or doubled (designs 0004 and 0029). So messages are acknowledged before the task runs,
nothing is prefetched beyond what runs, and there is no result backend.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kombu import Queue

from beat_schedule import TICKS_QUEUE, beat_schedule
from kcm.manager.ticks.resting import list_followed_loops
from kcm.reconcile.contract import Controller
from kcm.settings import Settings
from workers.broker import broker_tls, broker_url, transport_options
from workers.tasks import list_task_names

# A field of Celery's configuration: the loops that see another one, see kcm.manager.ticks.resting.
FOLLOWED_LOOPS = "kcm_followed_loops"
# The peak memory of a child in KiB, beyond which it is replaced. The new child lists everything
# again and reaches the same peak, so children would be replaced forever with a limit below that of
# a full cache.
MAX_MEMORY_PER_CHILD = 3_000_000


def configuration(settings: Settings, controllers: Sequence[Controller]) -> dict[str, Any]:
    """Returns the settings for `app.conf`."""
    groups = {controller.group for controller in controllers}
    return {
        "broker_url": broker_url(settings),
        "broker_use_ssl": broker_tls(settings),
        "broker_transport_options": transport_options(settings, list_task_names(controllers)),
        "broker_connection_retry_on_startup": True,
        # Redis may be unavailable for long, so workers never give up.
        "broker_connection_max_retries": None,
        "broker_channel_error_retry": True,
        "worker_consumer": "workers.consumer:EagerConsumer",
        "result_backend": None,
        "task_ignore_result": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        "task_acks_late": False,
        # Celery acknowledges before a task runs, so the broker need not keep unacknowledged
        # messages, which saves two transactions per message.
        "task_queues": [
            Queue(name, routing_key=name, no_ack=True) for name in sorted({*groups, TICKS_QUEUE})
        ],
        "task_default_queue": TICKS_QUEUE,
        "task_create_missing_queues": True,
        "task_store_errors_even_if_ignored": False,
        "worker_prefetch_multiplier": 1,
        # The limit above counts messages that are not acknowledged; this one those that wait or
        # run.
        "worker_disable_prefetch": True,
        "worker_max_memory_per_child": MAX_MEMORY_PER_CHILD,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "worker_proc_alive_timeout": 10.0,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        # Flower sends queries; `remotecontrol` refuses commands.
        "worker_enable_remote_control": True,
        "beat_scheduler": "workers.beat:LeasedScheduler",
        "beat_max_loop_interval": 1.0,  # the longest time until a beat notices that it leads
        "beat_schedule": beat_schedule(controllers),
        FOLLOWED_LOOPS: list_followed_loops(controllers),
        "timezone": "UTC",
    }
