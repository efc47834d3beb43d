"""Runs the sync loop's work that waits for the store or the runtime in other threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import structlog

from kcm import errors

log = structlog.get_logger("kcm.kubelet")

_THREADS = 2


class BackgroundWork:
    """Runs functions in a few threads. A failure is logged, and the function is not run again."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="kcm-background")
        self._stopped = threading.Event()

    def submit(self, work: Callable[[], None]) -> None:
        """Runs the function in another thread, unless the background work was stopped."""
        if not self._stopped.is_set():
            self._pool.submit(_run_and_log, work)

    def stop(self) -> None:
        """Drops the functions that have not started, and does not wait for the others."""
        self._stopped.set()
        self._pool.shutdown(wait=False, cancel_futures=True)


def _run_and_log(work: Callable[[], None]) -> None:
    try:
        work()
    except errors.KcmError as error:
        log.warning("background work failed, the next clean-up tries again", error=str(error))
