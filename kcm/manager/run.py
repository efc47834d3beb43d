"""Runs a manager: serves health, waits for the store, leads if necessary, starts and stops.

With leader election, only the leader dispatches, ingests, pumps and reaps. Over kcm's own store,
workers are not part of the election: their writes are fenced per key (design 0001), so idle workers
would protect nothing and cost capacity. Over another API server, which fences nothing, they write
only while their kcm leads (design 0007). A manager that loses the election stops all of its work at
once and exits with code 1. Its supervisor starts it again as a candidate.

Source: Run in cmd/kube-controller-manager/app/controllermanager.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from functools import partial

import structlog

from kcm import __version__, errors
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.coordination import LeaderCallbacks, LeaderElector
from kcm.coordination.election import LeaseLock, default_identity
from kcm.loops import ThreadHost
from kcm.manager.access import PageAccess
from kcm.manager.context.clients import ELECTION
from kcm.manager.context.context import ControllerContext, require_store
from kcm.manager.debug import DebugPages
from kcm.manager.health import Check, ManagerPages, build_app
from kcm.manager.leaselock import AnnouncedLock, StoreLeaseLock
from kcm.manager.manager import Manager
from kcm.manager.metrics import build_registry
from kcm.manager.serving import HealthServer, read_token
from kcm.options.manager import ManagerOptions

log = structlog.get_logger("kcm.manager")

RENEWAL_TOLERANCE = 20.0  # seconds overdue until /healthz fails, as upstream


def log_flags(options: ManagerOptions) -> None:
    """Logs the flags that were given, in one line, and at the level debug every flag with its
    effective value and the source of the value.

    No flag has a secret value: passwords and tokens are in files.
    """
    given = []
    for flag, value in options.values():
        text = f'--{flag.name}="{flag.format(value)}"'
        if flag.name in options.sources:
            given.append(text)
        log.debug(f"FLAG: {text}", source=options.sources.get(flag.name, "default"))
    log.info("Flags that were given", flags=" ".join(given))


class ManagerRun:
    """One manager process, from its start to its exit code.

    Any thread or signal handler may call `ask_to_stop`.
    """

    def __init__(self, context: ControllerContext) -> None:
        self.context = context
        self.manager = Manager(context)
        self._asked = threading.Event()
        self._election = ThreadHost(context.clock, stop=self._asked)
        self._failed = False
        self.elector = self._candidate() if context.options.leader_election.leader_elect else None
        self.server = self._health_server()

    def ask_to_stop(self) -> None:
        """Makes `run` stop the manager cleanly and return."""
        self._asked.set()
        self.context.stop.set()

    def run(self) -> int:
        """Runs the manager, and returns its exit code.

        That is 0 after `ask_to_stop`, and 1 if the election was lost or the start failed. Raises
        ConfigurationError and StoreUnavailable.
        """
        log_flags(self.context.options)
        log.info("Starting", version=__version__, loop_mode=self.context.loop_mode.value)
        self.server.start()
        try:
            require_store(self.context)
            if self.elector is None:
                self._work()
            else:
                self._election.keep("kcm-election", self.elector.run)
            self.context.stop.wait()
        except errors.StoreUnavailable:
            if not self._asked.is_set():
                raise
        finally:
            self._asked.set()
            self._end()
        return 1 if self._failed else 0

    def _end(self) -> None:
        self.manager.stop_loops()
        self._election.stop()
        self.manager.stop()
        self.server.stop()

    def _work(self) -> None:
        try:
            self.manager.start()
        except Exception as error:  # reported by the main thread, which ends the process
            if self.context.stop.is_set():  # the manager was stopped while it started
                log.debug("start was interrupted", error=str(error))
                return
            self._failed = True
            log.error("Error starting controllers", exc_info=error)
            self.context.stop.set()

    # --- election

    def _candidate(self) -> LeaderElector:
        options = self.context.options.leader_election
        config = options.election(default_identity())
        clients, clock = self.context.clients, self.context.clock
        place = ObjectMeta(name=config.name, namespace=config.namespace)
        objects = clients.client(ELECTION).objects
        lock: LeaseLock = StoreLeaseLock(objects, place, config.identity, self.context.recorder)
        if clients.leadership is not None:
            lock = AnnouncedLock(lock, clients.leadership, clock)
        callbacks = LeaderCallbacks(self._lead, self._stop_leading)
        return LeaderElector(config, lock, callbacks, clock=clock)

    def _lead(self, over: threading.Event) -> None:
        # Set by the elector the moment leading ends, before the lease is released.
        self._election.spawn("kcm-leading", partial(self._follow, over))
        self._work()

    def _follow(self, over: threading.Event) -> None:
        over.wait()
        self._stop_leading()

    def _stop_leading(self) -> None:
        """Stops all work. It is called when leading ends, and again when the elector ends."""
        if not self._asked.is_set() and not self.context.stop.is_set():
            self._failed = True
            log.error("leaderelection lost")
        self.context.stop.set()

    # --- health

    def _health_server(self) -> HealthServer:
        serving = self.context.options.serving
        leading = (
            None if self.elector is None else lambda: bool(self.elector and self.elector.is_leader)
        )
        pages = ManagerPages(
            live=self._live(),
            ready=self._ready(),
            notes=self._notes,
            registry=build_registry(self.manager, leading),
            config=lambda: {
                "kubecontrollermanager.config.k8s.io": self.context.options.to_config()
            },
            debug=DebugPages(self.manager),
        )
        access = PageAccess(read_token(serving), serving.loopback)
        return HealthServer(build_app(pages, access), serving, self.context.clock)

    def _live(self) -> Mapping[str, Check]:
        checks: dict[str, Check] = {"ping": lambda: None, "threads": self._threads_alive}
        elector = self.elector
        if elector is not None:
            checks["leaderElection"] = lambda: elector.check(RENEWAL_TOLERANCE)
        return checks

    def _ready(self) -> Mapping[str, Check]:
        checks: dict[str, Check] = {
            **self._live(),
            "store": self._store_answers,
            "informer-sync": self._caches_synced,
        }
        elector = self.elector
        if elector is not None:
            checks["leader"] = lambda: None if elector.is_leader else f"{elector.leader} leads"
        return checks

    def _notes(self) -> Iterator[str]:
        """Yields why controllers do not work on another API server, which costs them only."""
        if self.context.clients.remote is None:
            return
        for name, reason in (self.context.selection.skipped or {}).items():
            yield f"{name} does not run: {reason}"
        for informer in self.context.caches.factory.informers:
            if informer.refusal:
                yield f"{informer.resource.name} cannot be listed: {informer.refusal}"

    def _threads_alive(self) -> str | None:
        dead = self.context.host.list_dead()
        return f"threads ended: {', '.join(dead)}" if dead else None

    def _store_answers(self) -> str | None:
        try:
            self.context.clients.client("metrics").io.execute("PING")
        except errors.KcmError as error:
            return str(error)
        return None

    def _caches_synced(self) -> str | None:
        if not self.context.informers_started.is_set():
            return "informers have not started"
        informers = self.context.caches.factory.informers
        late = [i.resource.name for i in informers if not (i.has_synced() or i.refusal)]
        return f"not synced: {', '.join(sorted(late))}" if late else None
