"""What a node does beside running pods, put into an agent: probes, its HTTP API, figures,
eviction, graceful shutdown.

Guarantees: the API listens before the node says where; while the store was never
reached, only /healthz answers, for the key that lets others in is not known.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import structlog

from kcm import errors
from kcm.api.core_v1 import NodeCondition, NodeStatus, Pod
from kcm.apimachinery.quantity import ResourceList
from kcm.http.listening import listen
from kcm.kubelet.assembly.agent import Agent, Plugs
from kcm.kubelet.duty_options import DutyOptions
from kcm.kubelet.eviction.manager import EvictionManager
from kcm.kubelet.node.keeper import no_pressure
from kcm.kubelet.node.metrics import NodeMetrics
from kcm.kubelet.node.objects import capacity_of, machine
from kcm.kubelet.node.reserved import kept_back
from kcm.kubelet.options import KubeletOptions
from kcm.kubelet.pod_workers.terminator import Terminator
from kcm.kubelet.prober import probes
from kcm.kubelet.prober.interface import Prober
from kcm.kubelet.prober.manager import ProbeManager
from kcm.kubelet.prober.plug import probe_manager
from kcm.kubelet.server.app import KubeletServer, Sources
from kcm.kubelet.server.key import NodeKey
from kcm.kubelet.server.pods import NodePods
from kcm.kubelet.server.serving import NodeServer
from kcm.kubelet.shutdown.manager import ShutdownManager
from kcm.kubelet.stats.pages import resource_page, summary_page
from kcm.kubelet.stats.provider import StatsProvider
from kcm.kubelet.stats.reporting import UsageReporter, Write
from kcm.store.objects import ObjectStore

log = structlog.get_logger("kcm.kubelet")

LAST_WORDS = 1.0  # seconds for a node that has shut down to report what became of its pods


class Duties:
    """Made before the agent, for it needs to know the port; `attach` once it is there."""

    def __init__(
        self,
        options: KubeletOptions,
        duties: DutyOptions | None = None,
        prober: probes.Prober | None = None,
    ) -> None:
        """`prober` makes probes in place of the usual one. Raises: PortTaken,
        ConfigurationError."""
        self._duties = duties or DutyOptions()
        self._listener = self._listen(options)
        self.options = replace(options, port=int(self._listener.getsockname()[1]))
        self._metrics = NodeMetrics()
        self._made_by = prober
        self._probes: ProbeManager | None = None
        self._server: NodeServer | None = None
        self._eviction: EvictionManager | None = None
        self._shutdown: ShutdownManager | None = None

    def _listen(self, options: KubeletOptions) -> socket.socket:
        host = self._duties.bind_address or options.node_ip
        try:
            return listen(host, options.port, "--port")
        except errors.PortTaken:
            if self._duties.own_port:
                raise
        log.info("The kubelet's usual port is taken, so any other will do", port=options.port)
        return listen(host, 0, "--port")

    def plugs(self, plugs: Plugs) -> Plugs:
        """The plugs, with what is done here."""
        plugs.prober = self._prober
        plugs.conditions = self._conditions
        plugs.faults = lambda: self._shutdown.faults() if self._shutdown else []
        plugs.reserved = self._reserved()
        return plugs

    def _prober(self, agent: Agent) -> Prober:
        self._probes = probe_manager(agent, self._metrics.probes, self._made_by)
        return self._probes

    def _conditions(self, before: NodeStatus, now: datetime) -> Sequence[NodeCondition]:
        if self._eviction is None:
            return no_pressure(before, now)
        return self._eviction.conditions(before, now)

    def _reserved(self) -> ResourceList:
        self.options.root_dir.mkdir(parents=True, exist_ok=True, mode=0o711)
        capacity = capacity_of(machine(self.options.root_dir, ""), self.options.max_pods)
        duties = self._duties
        reserved = (duties.system_reserved, duties.kube_reserved)
        return kept_back(capacity, reserved, duties.eviction.thresholds)

    def attach(self, agent: Agent, store: ObjectStore, usage: Write | None = None) -> None:
        """Add what runs in threads to the agent. `usage` is where figures are written to."""
        options = self.options
        stats = StatsProvider(
            agent.runtime, agent.pods.pods, options.root_dir, options.pods_dir, agent.clock
        )
        self._serve(agent, store, stats)
        self._protect(agent, stats)
        if usage is not None:
            reporter = UsageReporter(options.node_name, stats, usage, agent.clock)
            agent.work.append(("usage", reporter.run))

    def _serve(self, agent: Agent, store: ObjectStore, stats: StatsProvider) -> None:
        node = self.options.node_name
        key = NodeKey(store, self.options)
        sources = Sources(
            pods=NodePods(agent.pods.pods, agent.statuses.get, agent.runtime),
            healthy=agent.healthy,
            metrics=(lambda: agent.metrics.text().encode(), self._metrics.page),
            resource_metrics=lambda: resource_page(stats.summary()).encode(),
            summary=lambda: summary_page(node, stats.summary()),
        )
        app = KubeletServer(sources, lambda: key.token, agent.clock)
        self._server = NodeServer(app, self._listener, *(self._duties.certificate or (None, None)))
        agent.work.append(("node-key", lambda stop: key.run(agent.clock, stop)))

    def _protect(self, agent: Agent, stats: StatsProvider) -> None:
        """Eviction and shutdown."""

        def active() -> list[Pod]:
            return agent.handlers.active_pods(agent.pods.pods())

        terminator = Terminator(agent.workers.update_pod, agent.recorder, agent.clock)
        self._eviction = EvictionManager(
            self._duties.eviction,
            stats,
            active,
            terminator,
            recorder=agent.recorder,
            clock=agent.clock,
            changed=agent.node.report_soon,
            count=self._metrics.evicted,
        )
        self._shutdown = ShutdownManager(
            self._duties.shutdown,
            active,
            terminator,
            recorder=agent.recorder,
            clock=agent.clock,
            report=agent.node.report_soon,
        )
        agent.handlers.admit_handlers += [self._eviction.admit, self._shutdown.admit]
        agent.work.append(("eviction", self._eviction.run))

    def start(self) -> None:
        """Before the agent starts."""
        if self._probes is not None:
            self._probes.start()
        if self._server is not None:
            self._server.start()

    def shut_down(self) -> None:
        """Before the agent stops: end all pods, if that is wanted."""
        if self._shutdown is not None and self._duties.shutdown:
            self._shutdown.shut_down()
            # The last statuses are written by threads that are about to be stopped.
            threading.Event().wait(LAST_WORDS)

    def stop(self) -> None:
        """After the agent has stopped."""
        for one in (self._server, self._probes):
            if one is not None:
                one.stop()
        if self._server is None:
            self._listener.close()
