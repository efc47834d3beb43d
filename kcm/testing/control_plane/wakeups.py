"""Runs the syncs for which the broker's lists have wake-ups, in the place of Celery's workers.

Queues, leases, fences and plans are those of every kcm. Celery itself is not involved: messages are
parsed here, and whatever is not a wake-up of a controller is dropped.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping

import structlog

from kcm.loops import Loop, Turn
from kcm.manager.context.context import ControllerContext
from kcm.reconcile.runner import Runner, SyncFailed

log = structlog.get_logger("kcm.testing")

_MOST = 100  # wake-ups that are read from a list at a time


class SyncLoop(Loop):
    """Runs the syncs of all controllers, one after the other."""

    reads = True

    def __init__(self, context: ControllerContext) -> None:
        super().__init__("kcm-syncs")
        self._io = context.io
        self._runners: Mapping[str, Runner] = {
            controller.short_name: context.runner(controller) for controller in context.controllers
        }
        prefix = context.io.keys.broker_prefix()
        groups = sorted({controller.group for controller in context.controllers})
        self._lists = [f"{prefix}{group}" for group in groups]
        self.counts: Counter[str] = Counter()  # the wake-ups, by controller and key

    def turn(self, patience: float) -> Turn:
        """Runs the syncs whose wake-ups wait. Those that fail are tried again by their queue.

        Raises StoreUnavailable.
        """
        count = 0
        for short_name, key in self._take():
            count += 1
            runner = self._runners.get(short_name)
            if runner is None:
                continue
            self.counts[f"{runner.controller.name} {key}"] += 1
            try:
                # One take for each wake-up: how many keys it syncs does not depend on how fast.
                runner.run(key, budget=0.0)
            except SyncFailed as error:
                log.debug("syncs failed, and are tried again", error=str(error))
        return Turn(count > 0)

    def _take(self) -> Iterator[tuple[str, str]]:
        """Yields controller and key of each message in the lists, the oldest of a list first."""
        for messages in self._io.pipeline([("RPOP", name, _MOST) for name in self._lists]):
            for raw in messages or ():
                yield parse_wakeup(raw)


def parse_wakeup(raw: bytes) -> tuple[str, str]:
    """Returns the controller's short name and the key of a wake-up, ("", "") for anything else."""
    try:
        message = json.loads(raw)
        task, body = message["headers"]["task"], json.loads(message["body"])
        _, name, kind = task.split(".")
        key = body[0][0]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return "", ""
    return (name, key) if kind == "sync" and isinstance(key, str) else ("", "")
