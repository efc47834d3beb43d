"""What a worker or beat is not started with: another broker, other pools, unknown queues.

Each would run and do nothing, or fail in ways that name no cause.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping
from typing import Any

from kcm import errors
from kcm.options import pools
from kcm.settings import Settings
from workers.broker import broker_url

_BROKERS = ("CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL")


def find_fault_of_broker(settings: Settings) -> str:
    """Returns why the broker that the environment or `-b` names cannot be used, "" if it can."""
    wanted = broker_url(settings)
    if all(os.environ.get(name, wanted) == wanted for name in _BROKERS):
        return ""
    return (
        "kcm's broker is the Redis of KCM_REDIS_URL, since the manager puts the messages there: "
        f"leave out -b and {', '.join(_BROKERS)}"
    )


def find_fault_of_queues(chosen: Collection[str], queues: Collection[str]) -> str:
    """Returns why the queues of `-Q` or `-X` cannot be used, "" if they can.

    `queues` are the queues that there are.
    """
    unknown = sorted(set(chosen) - set(queues))
    if not unknown:
        return ""
    return f"no queue is called {', '.join(unknown)}: there are {', '.join(sorted(queues))}"


def find_fault_of_kubeconfig(place: str) -> str:
    """Returns why the API server of `--kubeconfig` cannot be used, "" if it can or none is named.

    Nothing is connected, but a credential plugin runs.
    """
    if not place:
        return ""
    from kcm.store.remote.kubeconfig import connect  # noqa: PLC0415 - its imports take long

    try:
        connect(place)
    except errors.ConfigurationError as error:
        return str(error)
    return ""


def refuse_worker(app: Any, options: Mapping[str, Any]) -> None:
    """Raises SystemExit for a worker that cannot work. Nothing is connected yet.

    `options` are those of Celery's command.
    """
    pool = getattr(options.get("pool"), "__module__", "").rpartition(".")[2]
    queues = [queue.name for queue in app.conf.task_queues]
    chosen = [*(options.get("queues") or ()), *(options.get("exclude_queues") or ())]
    _end(pools.find_fault(pool) or find_fault_of_queues(chosen, queues))
    refuse_other_brokers()
    from kcm.options.manager import ManagerOptions  # noqa: PLC0415 - kubelets import this module

    _end(find_fault_of_kubeconfig(ManagerOptions.load().generic.kubeconfig))


def refuse_other_brokers() -> None:
    """Raises SystemExit if the environment or `-b` names another broker than kcm's Redis."""
    _end(find_fault_of_broker(Settings()))


def allow_root() -> None:
    """Silences Celery's warning of workers that run as root.

    It is about pickled messages, which can run anything. kcm's workers accept JSON only.
    """
    warnings.filterwarnings("ignore", message="You're running the worker with superuser")


def _end(fault: str) -> None:
    if fault:
        raise SystemExit(f"Error: {fault}.")
