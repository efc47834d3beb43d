"""The loop that scrapes the kubelets of nodes that report no usage by themselves.

kcm's own kubelets and simulated nodes report to the `UsageBoard`, and are left alone. For all other
nodes whose kubelets are there, one API server at a time, the one that holds a lease, does what
metrics-server does, and reports in their place.

Guarantees: a kubelet that hangs, fails or sends what cannot be read costs `TIMEOUT`, one connection
and `MOST_BYTES`, and no other node its turn: those that failed the last time wait for each other
only. What goes wrong with a node is logged when it begins, and when it is over.

Source: pkg/scraper/scraper.go and client/resource/client.go of metrics-server 0.9. Departures: the
kubelet's address and port are those to which logs and exec lead, nodes of which nothing is heard
are passed over, and the annotation metrics.k8s.io/resource-metrics-path is ignored.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from dataclasses import replace

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge

from kcm import errors
from kcm.api.core_v1 import Node
from kcm.api.simulated import SIMULATOR_LABEL
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.egress.kubelet import KubeletClient, KubeletUnreachable, locate_kubelet
from kcm.apiserver.egress.scraping.page import read_page
from kcm.apiserver.egress.scraping.rates import RESOLUTION, NodeHistory
from kcm.coordination.lease import FencedLease, new_holder
from kcm.helpers import node_token
from kcm.http.faults import CallFailed, status_fault
from kcm.loops import Loop, Turn
from kcm.store import Store
from kcm.store.resource_metrics.usage import UsageBoard

log = structlog.get_logger("kcm.apiserver")

LEASE = "apiserver-scraping"
LEASE_DURATION = 2.5 * RESOLUTION  # seconds; it is renewed with each round
REPORT_LASTS = 3.5 * RESOLUTION  # seconds
TIMEOUT = 10.0  # seconds for one kubelet, as metrics-server's --kubelet-request-timeout
MOST_BYTES = 4 * 1024 * 1024  # of a page; 500 pods of three containers take 1.3 MB
AT_ONCE, FAILING_AT_ONCE = 128, 16  # kubelets
LINGER = 0.05  # seconds at the end of a round for the last connections to be closed
SPREAD, LONGEST_SPREAD = 0.008, 4.0  # seconds over which a round's requests begin: a node, and all


class UsageScraper(Loop):
    """Scrapes and reports. Its turns are rounds, and waits for their kubelets."""

    def __init__(
        self, store: Store, cacher: Cacher, kubelet: KubeletClient, registry: CollectorRegistry
    ) -> None:
        super().__init__("kcm-scraping")
        self._store = store
        self._cacher = cacher
        self._kubelet = kubelet
        self._clock = store.clock
        self._board = UsageBoard(store.io)
        self._lease = FencedLease(
            store.io,
            LEASE,
            new_holder("apiserver"),
            duration=LEASE_DURATION,
            renew_every=RESOLUTION,
            clock=store.clock,
        )
        self._rng = random.Random()  # when a request begins needs no secrecy
        self._runner = asyncio.Runner()
        self._lane, self._failing_lane = map(asyncio.Semaphore, (AT_ONCE, FAILING_AT_ONCE))
        self._next_round = float("-inf")
        self._histories: dict[str, NodeHistory] = {}  # by the nodes that are scraped
        self._running: dict[str, asyncio.Task[None]] = {}
        self._failing: set[str] = set()
        self._scrapes = Counter(
            "kcm_apiserver_kubelet_scrapes",
            "Scrapes of kubelets that report no usage by themselves, by result.",
            ("result",),
            registry=registry,
        )
        Gauge(
            "kcm_apiserver_kubelets_failing",
            "Kubelets that could not be scraped at the last attempt.",
            registry=registry,
        ).set_function(lambda: len(self._failing))

    def turn(self, patience: float) -> Turn:
        """Begins a round if it is time, or waits for kubelets. Raises StoreUnavailable."""
        now = self._clock.monotonic()
        if now >= self._next_round and self._cacher.filled:
            self._next_round = now + RESOLUTION
            self._begin_round()
        if self._running:
            self._runner.run(self._wait(patience))
        return Turn(upkeep_in=0.0 if self._running else max(self._next_round - now, 1.0))

    def end(self) -> None:
        """Ends the requests, and gives the lease back. Raises StoreUnavailable."""
        self._runner.close()
        self._lease.release()

    async def _wait(self, patience: float) -> None:
        await asyncio.wait(self._running.values(), timeout=patience)
        if not self._running:
            await asyncio.sleep(LINGER)

    def _begin_round(self) -> None:
        nodes = {node.name: node for node in self._list_silent()}
        if nodes and not self._lease.try_acquire():
            nodes = {}
        self._histories = {name: self._histories.get(name) or NodeHistory(name) for name in nodes}
        self._failing &= nodes.keys()
        spread = min(SPREAD * len(nodes), LONGEST_SPREAD)
        key = node_token.read_key(self._store) if nodes else None
        for name, node in nodes.items():
            if name not in self._running:
                scraping = self._scrape(node, key, self._rng.random() * spread)
                self._running[name] = self._runner.get_loop().create_task(scraping)

    def _list_silent(self) -> list[Node]:
        """Returns the nodes that do not report by themselves. Raises StoreUnavailable."""
        nodes = list(self._list_heard())
        reporting = self._board.reporting([node.name for node in nodes])
        return [node for node in nodes if node.name not in reporting]

    def _list_heard(self) -> Iterator[Node]:
        """Yields the nodes whose kubelets have told how they are, and not fallen silent since."""
        for entry in self._cacher.cache(Node.resource).entries():
            conditions = entry.obj.status.conditions or ()
            ready = next((one.status for one in conditions if one.type == "Ready"), "Unknown")
            if ready != "Unknown" and SIMULATOR_LABEL not in entry.obj.labels:
                yield entry.obj

    async def _scrape(self, node: Node, key: bytes | None, delay: float) -> None:
        try:
            await asyncio.sleep(delay)
            async with self._failing_lane if node.name in self._failing else self._lane:
                moment = self._clock.now().timestamp()
                page = await self._fetch(node, key)
            self._take(node.name, page, moment)
        except errors.Temporary as error:
            log.info("The usage of a node was not reported", node=node.name, error=error.message)
        except Exception as error:  # noqa: BLE001 - one bad kubelet costs itself only
            self._note_failure(node.name, error)
        finally:
            del self._running[node.name]

    async def _fetch(self, node: Node, key: bytes | None) -> bytes:
        """Returns the page of a node's kubelet. Raises ApiError and CallFailed."""
        kubelet = locate_kubelet(node, key, tls=self._kubelet.tls)
        where = replace(kubelet, url=f"{kubelet.url}/metrics/resource")
        try:
            async with asyncio.timeout(TIMEOUT):
                answer = await self._kubelet.fetch(where, most=MOST_BYTES)
        except TimeoutError:
            raise KubeletUnreachable(f'Get "{where.url}": context deadline exceeded') from None
        if answer.status != 200:
            raise status_fault(answer.status, answer.body)
        return answer.body

    def _take(self, node: str, page: bytes, moment: float) -> None:
        """Reports what a page says. Raises CallFailed and StoreUnavailable."""
        points = read_page(page, moment)
        if not points:
            raise CallFailed("the response has no usage of a node or a container")
        if (history := self._histories.get(node)) is None:
            return  # it was deleted meanwhile, or reports by itself
        if (report := history.take(points)) is not None:
            self._board.report([report], REPORT_LASTS)
        self._scrapes.labels("success").inc()
        if node in self._failing:
            self._failing.discard(node)
            log.info("A kubelet is scraped again", node=node)

    def _note_failure(self, node: str, error: Exception) -> None:
        self._scrapes.labels("failure").inc()
        if node not in self._failing and node in self._histories:
            self._failing.add(node)
            surprise = None if isinstance(error, errors.KcmError) else error
            why = errors.shorten(str(error))
            log.warning("A kubelet cannot be scraped", node=node, why=why, exc_info=surprise)
