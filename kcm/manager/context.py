"""What all controllers of a process share (seed 1's ControllerContext).

Upstream: CreateControllerContext in cmd/kube-controller-manager/app/controllermanager.go.
Building it opens no connection and starts no thread; `start` does.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from kcm import errors
from kcm.api.scheme import Resource
from kcm.clock import Clock, RealClock
from kcm.coordination import new_holder
from kcm.informers.factory import SharedInformerFactory
from kcm.manager.interpreter import tune
from kcm.manager.options import ManagerOptions
from kcm.manager.selection import enabled_controllers
from kcm.reconcile.caches import Caches
from kcm.reconcile.contract import Controller
from kcm.reconcile.events import EventRecorder
from kcm.reconcile.runner import FRESHNESS_TIMEOUT, Runner
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store
from kcm.workqueue import Renewer, WorkQueue

log = structlog.get_logger("kcm.manager")


@dataclass
class ControllerContext:
    """Collaborators of the controllers in one process."""

    settings: Settings
    options: ManagerOptions
    controllers: Sequence[Controller]
    io: RedisIO
    store: Store
    caches: Caches
    renewer: Renewer
    recorder: EventRecorder
    clock: Clock
    identity: str
    stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Attach to the store, fill the caches, start renewals and the event recorder.

        Raises: StoreUnavailable, ConfigurationError.
        """
        tune()
        self.io.attach()
        self.caches.ensure(list(self.controllers))
        self.caches.factory.start()
        if not self._threads:
            self._spawn(self.renewer.run, "kcm-renewer")
            self._spawn(self.recorder.run, "kcm-events")
        self.caches.factory.wait_for_cache_sync(self.stop)

    def _spawn(self, target: object, name: str) -> None:
        thread = threading.Thread(target=target, args=(self.stop,), name=name, daemon=True)  # type: ignore[arg-type]
        thread.start()
        self._threads.append(thread)

    def wait_fresh(self, resources: Sequence[Resource]) -> None:
        """Wait until the caches hold every earlier write (DESIGN D5). Raises: CacheNotSynced."""
        barrier = self.caches.factory.freshness_barrier()
        barrier.wait(resources, FRESHNESS_TIMEOUT, self.stop)

    def queue(self, controller: Controller) -> WorkQueue:
        """The controller's work queue."""
        return WorkQueue(self.io, controller.short_name, clock=self.clock)

    def runner(self, controller: Controller) -> Runner:
        """What runs the controller's keys in this process."""
        return Runner(
            controller,
            store=self.store,
            caches=self.caches,
            queue=self.queue(controller),
            renewer=self.renewer,
            recorder=self.recorder,
            clock=self.clock,
            stop=self.stop,
        )

    def shutdown(self) -> None:
        """Stop the threads and close connections."""
        self.stop.set()
        for thread in self._threads:
            thread.join(2.0)
        self.caches.factory.shutdown()
        self.io.close()


def build_context(
    settings: Settings | None = None,
    options: ManagerOptions | None = None,
    clock: Clock | None = None,
) -> ControllerContext:
    """A context for the enabled controllers; nothing is connected yet."""
    settings = settings or Settings()
    options = options or ManagerOptions.load()
    clock = clock or RealClock()
    io = RedisIO(settings)
    store = Store(io, clock)
    return ControllerContext(
        settings=settings,
        options=options,
        controllers=enabled_controllers(options),
        io=io,
        store=store,
        caches=Caches(SharedInformerFactory(store, clock=clock)),
        renewer=Renewer(io, clock=clock),
        recorder=EventRecorder(store, clock),
        clock=clock,
        identity=new_holder(f"{socket.gethostname()}-{os.getpid()}"),
    )


def require_store(context: ControllerContext, timeout: float = 10.0) -> None:
    """Wait up to `timeout` seconds for the store, as upstream waits for the API server.

    Raises: StoreUnavailable when it does not answer in time.
    """
    deadline = context.clock.monotonic() + timeout
    while True:
        try:
            context.io.attach()
            return
        except errors.Temporary as error:
            if context.clock.monotonic() >= deadline or context.stop.is_set():
                raise errors.StoreUnavailable(
                    f"the store did not answer within {timeout:g} s: {error}"
                ) from error
            context.clock.wait(context.stop, 0.2)
