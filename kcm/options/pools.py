"""Celery's pools: which of them kcm does not run in."""

from __future__ import annotations

_REFUSED = frozenset({"gevent", "eventlet"})


def find_fault(pool: str) -> str:
    """Returns why a worker cannot use a pool, by Celery's name of it, "" if it can."""
    if pool not in _REFUSED:
        return ""
    return (
        f"kcm does not run in Celery's pool {pool}: use prefork, which is the default, threads or "
        "solo"
    )
