"""The Celery side of kcm: the app, its tasks, and what runs beside them.

`celery -A workers worker`, `celery -A workers beat` and `celery -A workers
flower` are the processes; `kcm up` starts all of them on one machine.
"""

from workers.app import app

__all__ = ["app"]
