"""The Celery side of kcm: the app, its tasks, and the manager that a worker starts.

`celery -A workers worker`, `celery -A workers beat` and `celery -A workers flower` are the
processes. `kcm up` starts all of them on one machine.
"""

from __future__ import annotations

from typing import Any

from kcm.interpreter import pause_collector

__all__ = ["app"]


def __getattr__(name: str) -> Any:
    """Returns the app, which is created at the first access: kubelets do not need the control
    plane.

    Celery looks for `app`, and then, since that is also a module here, for `celery`.
    """
    if name in ("app", "celery"):
        with pause_collector():
            from workers.app import app  # noqa: PLC0415 - it loads the whole control plane

        globals().update(app=app, celery=app)
        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
