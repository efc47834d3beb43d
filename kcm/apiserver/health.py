"""/healthz, /livez and /readyz, which report whether the server works and is ready.

Source: staging/src/k8s.io/apiserver/pkg/server/healthz, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from kcm import errors
from kcm.apiserver.auth.attributes import ANYBODY
from kcm.apiserver.auth.authorizer import Authorizer
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.http.responses import Response
from kcm.http.health_metrics import HealthMetrics
from kcm.store import Store

PATHS = ("healthz", "livez", "readyz")
Check = Callable[[], str | None]  # what is wrong, or None


def health_checks(
    store: Store, cacher: Cacher, authorizer: Authorizer, shutting_down: threading.Event
) -> Mapping[str, Mapping[str, Check]]:
    """Returns the checks of each path by their names. A check returns what is wrong, or None.

    The store is checked by /readyz only: a restart of this process would not help against its
    outage. /readyz fails from `shutting_down` on, while requests are served, so that a load
    balancer sends no more. As upstream, /healthz fails until the server has started: envtest and
    others take it for the word that requests are served.
    """

    def redis() -> str | None:
        try:
            store.resource_version()
        except errors.KcmError as error:
            return error.message
        return None

    def cache() -> str | None:
        return None if cacher.filled else "not filled yet"

    def roles() -> str | None:
        # Reads them all in this thread. Otherwise the first request would do so in the event loop.
        try:
            authorizer.rights(ANYBODY, "")
        except errors.KcmError as error:
            return error.message
        return None

    def ping() -> str | None:
        return None

    def shutdown() -> str | None:
        return "process is shutting down" if shutting_down.is_set() else None

    started = {"ping": ping, "watch-cache": cache, "roles": roles}
    ready = {**started, "redis": redis, "shutdown": shutdown}
    return {"healthz": started, "livez": {"ping": ping}, "readyz": ready}


def respond(
    name: str,
    which: Mapping[str, Check],
    check_name: str,
    metrics: HealthMetrics,
    *,
    verbose: bool,
    excluded: Sequence[str],
) -> Response:
    """Returns the page of a path, or of one of its checks if `check_name` is set.

    `which` are the checks of the path `name`. As upstream, `metrics` count those of whole pages.
    """
    if check_name:
        if check_name not in which:
            return _text("404 page not found\n", 404)
        fault = which[check_name]()
        return _text("ok") if fault is None else _text(f"internal server error: {fault}\n", 500)
    faults = {check: run() for check, run in which.items() if check not in excluded}
    metrics.count(name, faults)
    failed = any(fault is not None for fault in faults.values())
    if not failed and not verbose:
        return _text("ok")
    lines = [
        f"[+]{check} ok" if fault is None else f"[-]{check} failed: {fault}"
        for check, fault in faults.items()
    ]
    lines += [f"[+]{check} excluded: ok" for check in which if check in excluded]
    lines.append(f"{name} check {'failed' if failed else 'passed'}")
    return _text("\n".join(lines) + "\n", 500 if failed else 200)


def _text(words: str, code: int = 200) -> Response:
    return Response(words.encode(), code, "text/plain; charset=utf-8")
