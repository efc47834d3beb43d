"""The debug pages: controllers with their queues and caches, and threads.

If a controller has a method `debug(view)`, its page shows what that returns (JSON), otherwise its
queue, its watches and its caches.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from kcm import errors
from kcm.api.scheme import Resource
from kcm.manager.manager import Manager
from kcm.reconcile.contract import Controller


class DebugPages:
    """The debug pages of one manager."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._context = manager.context

    def controllers(self) -> Mapping[str, Any]:
        """Returns the names of the controllers that were started, disabled or skipped, the latter
        with reasons.
        """
        selection = self._context.selection
        return {
            "started": list(self._manager.started),
            "disabled": list(selection.disabled),
            "skipped": dict(selection.skipped or {}),
        }

    def controller(self, name: str) -> Any:
        """Returns the description of a controller by its name or short name, None if it does not
        run.
        """
        for controller in self._context.controllers:
            if name in (controller.name, controller.short_name):
                return self._describe(controller)
        return None

    def _describe(self, controller: Controller) -> Any:
        own = getattr(controller, "debug", None)
        if callable(own):
            return own(self._context.caches.view(controller, self._context.clock.now()))
        return {
            "name": controller.name,
            "alias": controller.short_name,
            "options": controller.options.model_dump(mode="json"),
            "queue": self._queue(controller),
            "ticks": {tick.name: tick.every for tick in controller.ticks()},
            "handlerPanics": self._manager.handler_panics.get(controller.name, 0),
            "caches": [self._cache(r) for r in self._context.caches.resources(controller)],
        }

    def _queue(self, controller: Controller) -> Any:
        if not controller.watches():
            return None
        try:
            return asdict(self._context.queue(controller).stats())
        except errors.KcmError as error:
            return {"error": str(error)}

    def _cache(self, resource: Resource) -> Mapping[str, Any]:
        informer = self._context.caches.informer(resource)
        kinds = {kind.resource: kind for kind in self._manager.kinds}
        kind = kinds.get(informer.resource)
        return {
            "kind": informer.resource.name,
            "objects": len(informer.get_store().list_keys()),
            "synced": informer.has_synced(),
            "resourceVersion": informer.last_sync_resource_version,
            "watched": kind is not None,
            "dispatchedHere": kind is not None and kind.lease.held,
        }

    def threads(self) -> str:
        """Returns the names and stacks of all threads."""
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        parts = [
            f"{names.get(ident, '?')} ({ident})\n{''.join(traceback.format_stack(frame))}"
            for ident, frame in sys._current_frames().items()
        ]
        return "\n".join(parts)
