"""The informers of a process, and how they read by what the process is for."""

from __future__ import annotations

import random

from kcm.informers.factory import SharedInformerFactory
from kcm.informers.options import InformerOptions
from kcm.informers.source import LevelSource, ListerWatcher
from kcm.manager.context.clients import Client, ClientBuilder
from kcm.manager.context.discovery import Discovery
from kcm.manager.context.observing import CountingObserver
from kcm.reconcile.caches import Caches
from kcm.store.definitions import Definitions

# Seconds between the reads of a worker that watches another API server, unless a sync waits.
WORKERS_REST = 0.05


def choose_options(
    kind: str, *, remote: bool, embedded: bool, resync: float = 0.0
) -> InformerOptions:
    """Returns the options of a `worker` or a `manager`.

    A manager has to dispatch changes, so it reads them at once. A worker reads them when it has a
    key to sync. Of another API server, whose watches have connections of their own, it takes what
    has come once in a while. Inside another program, nothing has a thread.

    A manager whose handlers may come long after the informers have started, as it has to lead
    first, has them resynced no more often than every `resync` seconds.
    """
    if embedded:
        return InformerOptions(pull=not remote, threaded=False, detect_mutations=True)
    if kind != "worker":
        return InformerOptions(default_resync=resync)
    if remote:
        return InformerOptions(merge_seconds=WORKERS_REST, read_interval=WORKERS_REST)
    return InformerOptions(pull=True)


def build_caches(
    clients: ClientBuilder,
    shared: Client,
    observer: CountingObserver,
    discovery: Discovery,
    *,
    options: InformerOptions,
    rng: random.Random | None,
) -> Caches:
    """Returns the caches of a process over the store whose objects its controllers change."""
    source: ListerWatcher = clients.client("shared-informers").objects
    if not options.threaded and clients.remote is None:
        source = LevelSource(shared.store)
    clock = shared.store.clock
    factory = SharedInformerFactory(
        source, clock=clock, options=options, observer=observer, rng=rng
    )
    if clients.remote is not None:
        return Caches(factory, shared.metrics, clients.scheme, discover=discovery.refresh)
    definitions = Definitions(shared.store, clock)
    return Caches(factory, shared.metrics, clients.scheme, definitions.refresh)
