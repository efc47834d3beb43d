"""Watches pods with a shared informer, whose event handler records when each pod was added.

The program prints `ready` once its cache has synced. When its standard input is closed, it prints
the times as JSON: monotonic seconds by pod name.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

from kcm.api.core_v1 import Pod
from kcm.informers.factory import SharedInformerFactory
from kcm.interpreter import tune
from kcm.loops import ThreadHost
from kcm.redisio import RedisIO
from kcm.store import Store


class TimingHandler:
    """An event handler that records when each object was added."""

    def __init__(self) -> None:
        self.seen: dict[str, float] = {}

    def on_add(self, obj: Any, is_in_initial_list: bool) -> None:
        self.seen[obj.name] = time.monotonic()

    def on_update(self, old: Any, new: Any) -> None:
        """Does nothing: only creations are measured."""

    def on_delete(self, obj: Any) -> None:
        """Does nothing: only creations are measured."""


def main() -> None:
    tune()
    io = RedisIO()
    io.attach()
    factory = SharedInformerFactory(Store(io))
    handler = TimingHandler()
    factory.informer_for(Pod).add_event_handler(handler)
    factory.start()
    host = ThreadHost()
    host.run(factory.loop)
    factory.wait_for_cache_sync(threading.Event())
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()
    json.dump(handler.seen, sys.stdout)
    host.stop()
    factory.shutdown()


if __name__ == "__main__":
    main()
