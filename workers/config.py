"""Celery's configuration, with the reason for each departure from its defaults.

The work queue in Redis is the record. A Celery message only wakes a worker and may be lost, late or
doubled (designs 0004 and 0029). So messages are acknowledged before the task runs, nothing is
prefetched beyond what runs, and there is no result backend.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kombu import Queue

from beat_schedule import TICKS_QUEUE, beat_schedule
from kcm.component.resting import list_followed_loops
from kcm.reconcile.contract import Controller
from kcm.settings import Settings
from workers.broker import broker_url, transport_options
from workers.tasks import list_task_names

# In Celery's configuration: the loops that see another one, see kcm.component.resting.
FOLLOWED_LOOPS = "kcm_followed_loops"
# KiB, of the child's peak. A recycled child lists everything anew and comes to the same peak: a
# limit below that of a full cache would replace children for ever.
MAX_MEMORY_PER_CHILD = 3_000_000


def configuration(settings: Settings, controllers: Sequence[Controller]) -> dict[str, Any]:
    """Returns everything for `app.conf`."""
    groups = {controller.group for controller in controllers}
    return {
        "broker_url": broker_url(settings),
        "broker_transport_options": transport_options(settings, list_task_names(controllers)),
        "broker_connection_retry_on_startup": True,
        # Redis may be away for long, so workers never give up.
        "broker_connection_max_retries": None,
        "broker_channel_error_retry": True,
        "result_backend": None,
        "task_ignore_result": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        "task_acks_late": False,
        # Celery acknowledges before a task runs, so nothing is gained by telling the broker what
        # is on its way: two transactions less for each message.
        "task_queues": [
            Queue(name, routing_key=name, no_ack=True) for name in sorted({*groups, TICKS_QUEUE})
        ],
        "task_default_queue": TICKS_QUEUE,
        "task_create_missing_queues": True,
        "task_store_errors_even_if_ignored": False,
        "worker_prefetch_multiplier": 1,
        # The limit above counts what is not acknowledged; this one what waits and runs.
        "worker_disable_prefetch": True,
        "worker_max_memory_per_child": MAX_MEMORY_PER_CHILD,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "worker_proc_alive_timeout": 10.0,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        # Flower asks questions; orders are refused by `remotecontrol`.
        "worker_enable_remote_control": True,
        "beat_scheduler": "workers.beat:LeasedScheduler",
        "beat_max_loop_interval": 1.0,  # within this a beat notices that it leads
        "beat_schedule": beat_schedule(controllers),
        FOLLOWED_LOOPS: list_followed_loops(controllers),
        "timezone": "UTC",
    }
