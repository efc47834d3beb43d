"""What a kubelet is given at its construction: stores, the clock and optional collaborators.

Source: Dependencies in pkg/kubelet/kubelet.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kcm.clock import Clock, RealClock
from kcm.informers.source import ListerWatcher
from kcm.kubelet.recorder import EventSink
from kcm.kubelet.runtime.services import NewRuntimeServices
from kcm.kubelet.stats.reporting import WriteUsage
from kcm.kubelet.tokens.manager import TokenSource
from kcm.store.objects import ObjectStore

Run = Callable[[threading.Event], None]
"""Runs a component in its thread until the event is set."""


class KubeletStore(ObjectStore, ListerWatcher, Protocol):
    """The methods of a store that the kubelet uses; the local and the remote store have them."""


@dataclass(frozen=True, kw_only=True)
class KubeletStores:
    """One store per kind of caller, so that callers do not wait for each other's requests."""

    objects: KubeletStore  # for ConfigMaps, Secrets, Services and mirror pods
    watch: KubeletStore
    status: KubeletStore
    node: KubeletStore
    server: KubeletStore


@dataclass(frozen=True, kw_only=True)
class Dependencies:
    """The stores of a kubelet, and its optional collaborators.

    `notify_work` is called with the uid of a pod that waits to be synced, and must make another
    process call `Kubelet.sync_waiting_pod`. Without it, the kubelet's own threads sync all pods.
    Without `write_usage`, no usage is reported. Without `tokens`, pods get no service account
    tokens. `runtimes` has the container runtimes besides the process runtime, by the values of
    `--container-runtime`. `api_server` is the host and port at which pods reach the API server,
    None for those of its Service.
    """

    stores: KubeletStores
    event_sink: EventSink | None = None
    notify_work: Callable[[str], None] | None = None
    write_usage: WriteUsage | None = None
    tokens: TokenSource | None = None
    runtimes: Mapping[str, NewRuntimeServices] = field(default_factory=dict)
    api_server: tuple[str, int] | None = None
    clock: Clock = field(default_factory=RealClock)
