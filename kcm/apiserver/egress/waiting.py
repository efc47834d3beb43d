"""Lets handlers wait for what runs in the event loop, without holding what others need.

Handlers run in greenlets of the event loop or in its few threads. A greenlet yields while it waits.
A thread cannot, so another one takes its place for that time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from kcm.apiserver.http.threads import replace_this_thread
from kcm.redisio import greenlets

T = TypeVar("T")


class LoopWaiter:
    """Waits for coroutines in one event loop, that of the API server."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def attach(self) -> None:
        """Makes the running event loop the one in which coroutines run."""
        self._loop = asyncio.get_running_loop()

    def wait(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Returns the result of the coroutine. Raises what it raises."""
        if greenlets.is_running():
            return greenlets.wait_aside(work())
        assert self._loop is not None
        with replace_this_thread():
            return asyncio.run_coroutine_threadsafe(work(), self._loop).result()
