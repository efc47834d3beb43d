"""The page `/metrics`: metrics of this process, and those that all processes keep in Redis.

Metrics of queues, syncs, leases, streams and workers are read from Redis at each scrape. So they
are right with any number of pool children, workers and hosts, and every manager exposes them;
aggregate over managers with `max`. Metrics that begin with `kcm_informer_` or `process_` are this
manager's own.
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from kcm import __version__, errors
from kcm.api.resource_v1 import ResourceClaim
from kcm.api.scheme import Kinds
from kcm.controllers.resourceclaim import ResourceClaimController
from kcm.controllers.scheduler import SchedulerController
from kcm.coordination.presence import members
from kcm.coordination.workqueue.metrics import QueueCollector
from kcm.manager.declared_metrics import families_of_declared
from kcm.manager.device_metrics import claim_families, volume_families
from kcm.manager.manager import Manager
from kcm.manager.node_metrics import DURATION, MONITOR, node_families
from kcm.manager.queues import count_workers
from kcm.manager.scheduler_metrics import pending_families
from kcm.manager.server_metrics import server_families
from kcm.manager.ticks.names import loop_name
from kcm.reconcile.counters import Counter, Histogram
from kcm.reconcile.metrics import BUCKETS, PASS, SYNC, Totals, read_counts, read_totals
from kcm.redisio import RedisIO
from kcm.store import damage

log = structlog.get_logger("kcm.metrics")

Sample = tuple[Sequence[str], float]


def build_registry(
    manager: Manager, leading: Callable[[], bool] | None = None
) -> CollectorRegistry:
    """Returns the registry of all metrics that one manager exposes.

    `leading` reports whether it leads, and is None without leader election.
    """
    registry = CollectorRegistry(auto_describe=False)
    io = manager.context.clients.client("metrics").io
    registry.register(
        _Page(
            own=lambda: own_families(manager, leading),
            stored=(
                QueueCollector(io).collect,
                lambda: sync_families(read_totals(io)),
                lambda: store_families(io, lease_names(manager), manager.context.store.scheme),
                lambda: worker_families(io, manager.queues.broker_queues),
                lambda: node_families(io),
                lambda: volume_families(io),
                lambda: claim_families(list_claims(manager)),
                lambda: pending_families(io, scheduler_names(manager)),
                lambda: families_of_declared(list_declared_metrics(manager), read_counts(io)),
            ),
        )
    )
    ProcessCollector(registry=registry)
    return registry


class _Page(Collector):
    """Collects the metrics of this process, then those that are read from the store.

    The first read that fails ends the page and sets `kcm_store_up` to 0, since the other reads
    would each wait for the same timeout.
    """

    def __init__(
        self,
        own: Callable[[], Iterable[Metric]],
        stored: Sequence[Callable[[], Iterable[Metric]]],
    ) -> None:
        self._own = own
        self._stored = stored

    def collect(self) -> Iterable[Metric]:
        yield from self._own()
        up = 1.0
        try:
            for part in self._stored:
                yield from list(part())
        except errors.KcmError as error:
            log.warning("metrics are not available", error=str(error))
            up = 0.0
        yield gauge("kcm_store_up", "Whether the store responds", [], [((), up)])


def gauge(name: str, text: str, labels: Sequence[str], samples: Iterable[Sample]) -> Metric:
    """Returns a gauge family."""
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, number in samples:
        family.add_metric(values, number)
    return family


def counter(name: str, text: str, labels: Sequence[str], samples: Iterable[Sample]) -> Metric:
    """Returns a counter family. `_total` is appended to the name."""
    family = CounterMetricFamily(name, text, labels=labels)
    for values, number in samples:
        family.add_metric(values, number)
    return family


def sync_families(totals: Mapping[tuple[str, str], Totals]) -> Iterable[Metric]:
    """Returns the results and durations of syncs and passes.

    They are like controller-runtime's controller_runtime_reconcile_*.
    """
    for what, label, thing in (
        (SYNC, "controller", "reconciliations"),
        (PASS, "loop", "passes of periodic loops"),
    ):
        by_name = {name: total for (of, name), total in totals.items() if of == what}
        yield counter(
            f"kcm_{what}",
            f"Number of {thing} by result",
            [label, "result"],
            [((n, r), c) for n, total in by_name.items() for r, c in total.results.items()],
        )
        family = HistogramMetricFamily(
            f"kcm_{what}_time_seconds", f"Duration of {thing}", labels=[label]
        )
        for name, total in by_name.items():
            family.add_metric([name], _cumulate(total), total.seconds)
        yield family
    yield _looks(totals.get((PASS, MONITOR)))


def _looks(total: Totals | None) -> Metric:
    """Returns the durations of passes over all nodes under upstream's name, with kcm's buckets."""
    family = HistogramMetricFamily(DURATION, "Duration of a check of the health of all nodes")
    if total is not None:
        family.add_metric([], _cumulate(total), total.seconds)
    return family


def _cumulate(total: Totals) -> list[tuple[str, float]]:
    running, pairs = 0, []
    bounds = [*(repr(bound) for bound in BUCKETS), "+Inf"]
    for bound, count in zip(bounds, total.counts, strict=True):
        running += count
        pairs.append((bound, float(running)))
    return pairs


def scheduler_names(manager: Manager) -> list[str]:
    """Returns the names of this manager's schedulers, none if the scheduler does not run here."""
    for controller in manager.context.controllers:
        if isinstance(controller, SchedulerController):
            return sorted(controller.options.names)
    return []


def list_claims(manager: Manager) -> Sequence[ResourceClaim]:
    """Returns the cached ResourceClaims, none if their controller does not run here."""
    for controller in manager.context.controllers:
        if isinstance(controller, ResourceClaimController):
            return manager.view_of(controller).lister(ResourceClaim).list()
    return ()


def list_declared_metrics(manager: Manager) -> list[Counter | Histogram]:
    """Returns the metrics that the controllers declare, each once. Some controllers inherit
    theirs.
    """
    metrics = (metric for c in manager.context.controllers for metric in c.metrics)
    return list(dict.fromkeys(metrics))


def lease_names(manager: Manager) -> list[str]:
    """Returns the names of all internal leases, whether or not they exist."""
    kinds = [f"dispatch:{kind.resource.name}" for kind in manager.kinds]
    loops = [loop_name(c, tick) for c in manager.context.controllers for tick in c.ticks()]
    return ["beat", "ingest", *kinds, *(f"tick:{name}" for name in loops)]


def store_families(io: RedisIO, leases: Sequence[str], kinds: Kinds) -> Iterable[Metric]:
    """Returns the metrics of leases, streams and the server. Raises Temporary."""
    keys, names = io.keys, [resource.name for resource in kinds.resources()]
    now = io.now()
    meta, stats, dropped, bus, waiting, dead, *rest = io.pipeline(
        [
            ("HGETALL", keys.meta()),
            ("HGETALL", keys.store_stats()),
            ("HGETALL", keys.broker_stats()),
            ("HGETALL", keys.event_stats()),
            ("XLEN", keys.events()),
            ("XLEN", keys.dead_events()),
            *(("XLEN", keys.watch(kind)) for kind in names),
            *(("ZCARD", keys.object_keys(kind)) for kind in names),
            *(("HMGET", keys.lease(name), "holder", "expires") for name in leases),
        ]
    )
    size = len(names)
    logs, objects, terms = rest[:size], rest[size : 2 * size], rest[2 * size :]
    yield gauge(
        "kcm_lease_held",
        "1 for each internal lease that is held",
        ["lease", "holder"],
        [
            ((name, term[0].decode()), 1)
            for name, term in zip(leases, terms, strict=True)
            if term[0] and int(term[1]) > now * 1000
        ],
    )
    yield counter(
        "kcm_event_bus_events",
        "Injected events that were processed, by result",
        ["result"],
        [((result,), int(bus.get(result.encode(), 0))) for result in ("applied", "refused")],
    )
    yield counter(
        "kcm_broker_messages_dropped",
        "Invalid messages of the broker that were dropped, by reason",
        ["reason"],
        [((reason.decode(errors="replace"),), int(n)) for reason, n in dropped.items()],
    )
    yield gauge("kcm_event_bus_waiting", "Injected events that wait", [], [((), waiting)])
    yield gauge("kcm_event_bus_dead_letters", "Refused events that are kept", [], [((), dead)])
    yield gauge("kcm_watch_log_length", "Entries in a watch log", ["resource"], _by(names, logs))
    yield gauge("kcm_store_objects", "Objects in the store", ["resource"], _by(names, objects))
    yield gauge(
        "kcm_store_damaged_objects",
        "Stored objects that were found to be unreadable",
        ["resource"],
        [((name,), n) for name, n in Counts(r for r, _ in damage.read_damaged(io)).items()],
    )
    yield from server_families(io, meta, stats)


def _by(names: Sequence[str], numbers: Sequence[Any]) -> list[Sample]:
    return [((name,), float(number)) for name, number in zip(names, numbers, strict=True)]


def worker_families(io: RedisIO, queues: Collection[str]) -> Iterable[Metric]:
    """Returns the numbers of live processes by kind and host, and of those that serve each queue.

    Raises Temporary.
    """
    alive = members(io)
    counts = Counts((member.kind, member.host) for member in alive)
    yield gauge(
        "kcm_processes_alive",
        "Processes that sent a heartbeat within 30 s",
        ["kind", "host"],
        counts.items(),
    )
    yield gauge(
        "kcm_queue_workers",
        "Worker processes that serve a Celery queue",
        ["queue"],
        [((queue,), number) for queue, number in count_workers(queues, alive).items()],
    )


def own_families(manager: Manager, leading: Callable[[], bool] | None) -> Iterable[Metric]:
    """Returns the metrics of this process."""
    context = manager.context
    seen = context.observer.snapshot
    yield gauge("kcm_build_info", "Version of kcm", ["version"], [((__version__,), 1)])
    yield gauge(
        "running_managed_controllers",
        "Controllers that this instance runs",
        ["name", "manager"],
        [((name, "kcm-controller-manager"), 1) for name in manager.started],
    )
    if leading is not None:
        yield gauge(
            "leader_election_master_status",
            "1 for the leader of the lease, 0 for a candidate",
            ["name"],
            [((context.options.leader_election.resource_name,), float(leading()))],
        )
    yield counter(
        "kcm_handler_panics",
        "Crashes in watch handlers, contained and logged",
        ["handler"],
        [*(((name,), n) for name, n in manager.handler_panics.items()), *seen("panics").items()],
    )
    yield counter(
        "kcm_loop_failures",
        "Turns of loops that failed, and were repeated after a back-off",
        ["loop"],
        [((name,), count) for name, count in context.host.failures.items()],
    )
    for name, what, text, labels in (
        ("lists", "lists", "Lists of a kind", ["kind"]),
        ("list_seconds", "list_seconds", "Seconds spent listing", ["kind"]),
        ("watch_entries", "watched", "Watch entries applied", ["kind"]),
        ("failures", "failures", "Failed steps of informers", ["kind", "step"]),
        ("handler_overflows", "overflows", "Full handler queues", ["kind", "handler"]),
    ):
        yield counter(f"kcm_informer_{name}", text, labels, seen(what).items())
