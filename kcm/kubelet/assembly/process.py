"""A kubelet as a process: with its connections, its recorder of Events and its heartbeats.

Guarantees: it starts also while the store is unavailable. Static pods run then; everything else
follows once the store is available.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog

from kcm.api.scheme import Scheme
from kcm.clock import Clock, RealClock
from kcm.coordination.failovers import failover_loops
from kcm.coordination.lease import new_holder
from kcm.coordination.presence import Member, Presence
from kcm.helpers.serviceaccount.tokens import Issuer, read_signing_key
from kcm.kubelet.assembly.kubelet import Kubelet, new_main_kubelet
from kcm.kubelet.assembly.records import Dependencies, KubeletStore, KubeletStores, Run
from kcm.kubelet.options import KubeletOptions
from kcm.kubelet.runtime.services import NewRuntimeServices
from kcm.kubelet.tokens.manager import RequestedTokens, SignedTokens, TokenSource
from kcm.loops import Loop, ThreadHost
from kcm.reconcile.events import EventRecorder
from kcm.redisio import Links, RedisIO
from kcm.settings import Settings
from kcm.store import Store
from kcm.store.resource_metrics.usage import UsageBoard

if TYPE_CHECKING:
    from kcm.kubelet.certificates.bootstrap import Joining
    from kcm.store.remote.kubeconfig import ClusterConnection
    from kcm.store.remote.rest import RestClient

log = structlog.get_logger("kcm.kubelet")

KIND = "kubelet"  # the kind of process that `kcm status` shows

OpenStore = Callable[[str], KubeletStore]
"""Returns a store with connections of its own. The argument becomes part of their name."""


class KubeletProcess:
    """Runs a kubelet that uses Redis, or an API server if there is a kubeconfig."""

    def __init__(
        self,
        settings: Settings,
        options: KubeletOptions,
        *,
        kubeconfig: Path | None = None,
        joining: Joining | None = None,
        runtimes: Mapping[str, NewRuntimeServices] | None = None,
        notify_work: Callable[[str], None] | None = None,
    ) -> None:
        """Builds the kubelet without opening a connection. Raises ConfigurationError.

        `joining` says which certificates rotate; None for none. `runtimes` and
        `notify_work` are as in `Dependencies`.
        """
        self._settings = settings
        self._clock: Clock = RealClock()
        self._stop = threading.Event()
        self._host = ThreadHost(self._clock, stop=self._stop)
        self._closers: list[Callable[[], None]] = []
        self._node_name = options.node_name
        self._clients: list[RestClient] = []
        self._links, self._scheme = Links(), Scheme()
        self._connection = _load_connection(kubeconfig) if kubeconfig else None
        open_store = self._open_remote_store if kubeconfig else self._open_local_store
        recorder = EventRecorder(open_store("events"), self._clock)
        self._loops: list[Loop] = [recorder]
        if kubeconfig is None:
            self._loops.append(self._build_presence(options.node_name))
            self._loops += failover_loops(self._open_redis("failovers"))
        dependencies = Dependencies(
            stores=KubeletStores(
                objects=open_store("main"),
                watch=open_store("watch"),
                status=open_store("status"),
                node=open_store("node"),
                server=open_store("api"),
            ),
            event_sink=recorder,
            notify_work=notify_work,
            write_usage=UsageBoard(self._open_redis("usage")).report if not kubeconfig else None,
            tokens=self._build_tokens(options, kubeconfig, open_store),
            runtimes=runtimes or {},
            api_server=options.pod_api_server or _server_of(self._connection),
            clock=self._clock,
        )
        self.kubelet: Kubelet = new_main_kubelet(options, dependencies)
        self._rotations = self._build_rotations(joining) if joining is not None else []

    def _build_rotations(self, joining: Joining) -> list[Run]:
        # They need a library for certificates that other kubelets do not load.
        from kcm.kubelet.assembly.certificates import build_rotations  # noqa: PLC0415

        return build_rotations(
            joining,
            self.kubelet,
            sender=self._open_client(),
            use_client=lambda store: self._use_certificate(store.current_path),
            stop=self._stop,
            clock=self._clock,
        )

    def _use_certificate(self, pem: Path) -> None:
        """Presents another client certificate, on new connections of all clients."""
        assert self._connection is not None
        self._connection.use_certificate(pem.read_bytes())
        for client in self._clients:
            client.reconnect()

    def _build_tokens(
        self, options: KubeletOptions, kubeconfig: Path | None, open_store: OpenStore
    ) -> TokenSource | None:
        """Returns where pods' tokens come from, None for nowhere. Raises ConfigurationError."""
        if kubeconfig is not None:
            client = self._open_client()
            return RequestedTokens(lambda path, body: client.request("POST", path, body=body))
        file = options.service_account_signing_key_file
        if file is None:
            return None
        key = read_signing_key(file, "service-account-signing-key-file")
        name = options.service_account_issuer
        return SignedTokens(open_store("tokens"), Issuer(key, name, (name,)), self._clock)

    def _open_client(self) -> RestClient:
        # Its HTTP library takes 0.1 s to import, so it is only imported where it is used.
        from kcm.store.remote.rest import RestClient  # noqa: PLC0415

        assert self._connection is not None
        client = RestClient(self._connection, "kubelet")
        self._clients.append(client)
        self._closers.append(client.close)
        return client

    def _open_redis(self, name: str, *, patient: bool = True) -> RedisIO:
        io = RedisIO(self._settings, name=f"kcm-kubelet-{name}", patient=patient, links=self._links)
        self._closers.append(io.close)
        return io

    def _open_local_store(self, name: str) -> KubeletStore:
        # Pod workers read through "main", and can use what they read before: they must not wait.
        io = self._open_redis(name, patient=name != "main")
        return Store(io, self._clock, scheme=self._scheme)

    def _open_remote_store(self, _: str) -> KubeletStore:
        # As in `_open_client`.
        from kcm.store.remote.store import RemoteStore  # noqa: PLC0415
        from kcm.store.remote.work import WorkState  # noqa: PLC0415

        own_pods = {"pods": f"spec.nodeName={self._node_name}"}
        store = RemoteStore(self._open_client(), WorkState(), self._clock, field_selectors=own_pods)
        self._closers.append(store.close)
        return store

    def _build_presence(self, node_name: str) -> Presence:
        member = Member(new_holder(node_name), KIND, name=node_name)
        return Presence(self._open_redis("presence"), member)

    def start(self) -> None:
        """Starts the recorder of Events, the heartbeats and the kubelet."""
        self._host.run(*self._loops)
        for rotate in self._rotations:
            self._host.keep("kcm-certificates", rotate)
        self.kubelet.start()

    def stop(self) -> None:
        """Stops everything. Pods run on unless the options say otherwise."""
        self.kubelet.stop()
        self._host.stop()
        for close in self._closers:
            close()


def _load_connection(kubeconfig: Path) -> ClusterConnection:
    from kcm.store.remote.kubeconfig import load  # noqa: PLC0415 - as in `_open_client`

    return load(kubeconfig)


def _server_of(connection: ClusterConnection | None) -> tuple[str, int] | None:
    """Returns the host and port of an API server, None without one."""
    server = urlsplit(connection.server) if connection is not None else None
    if server is None or not server.hostname:
        return None
    return (server.hostname, server.port or 443)
