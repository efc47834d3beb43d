"""Runs the API server: its keys and certificates, its default objects, and the server itself."""

from __future__ import annotations

import random
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import structlog

from kcm import errors
from kcm.api.scheme import Scheme
from kcm.apiserver import credentials
from kcm.apiserver.admission.config import load_admission_config
from kcm.apiserver.aggregation.options import AggregationFlags
from kcm.apiserver.app import ApiServer, ApiServerOptions
from kcm.apiserver.auth import tokenfile
from kcm.apiserver.auth.access import AccessRules
from kcm.apiserver.auth.authenticators import check_authorities
from kcm.apiserver.auth.authorizer import DEFAULT_MODES, ROLES
from kcm.apiserver.auth.control import AuthOptions
from kcm.apiserver.auth.service_accounts import TokenOptions
from kcm.apiserver.auth.token_options import TokenFlags
from kcm.apiserver.bootstrap.cluster import ClusterBootstrap
from kcm.apiserver.bootstrap.kubernetes_service import KubernetesService, list_names
from kcm.apiserver.bootstrap.peers import Peers, ServerKeys
from kcm.apiserver.credentials import Certificate
from kcm.apiserver.egress.kubelet import KubeletClient
from kcm.apiserver.filters.auditing.trail import open_trail
from kcm.apiserver.filters.faults import ServerFaults
from kcm.apiserver.heavy.lanes import HEAVY_THREADS
from kcm.apiserver.heavy.processes import HeavyProcesses
from kcm.apiserver.http.limits import Limits
from kcm.apiserver.serving import LINGER, Address, ApiHttpServer, bind, serve, url_of
from kcm.clock import Clock, RealClock
from kcm.coordination.failovers import failover_loops
from kcm.http.faults import CallFailed
from kcm.http.listening import LOOPBACK_OF_ALL, is_loopback_host
from kcm.http.trust import UNUSABLE, Trust, build_context
from kcm.loops import ThreadHost, contain
from kcm.options import feature_gates
from kcm.redisio.pipelining import PipelinedIO
from kcm.settings import Settings
from kcm.store import Store
from kcm.store.writes.observing import Observer

log = structlog.get_logger("kcm.apiserver")

OnServe = Callable[[ApiHttpServer, str], None]  # gets the server and its URL


def _ignore_start(server: ApiHttpServer, url: str) -> None:
    """Does nothing: a signal stops the server."""


def _ignore_changes() -> None:
    """Does nothing: no other code of the process waits for changes."""


@dataclass(frozen=True)
class Host:
    """What a program that runs the server inside itself passes to it. A command passes nothing."""

    on_serve: OnServe = _ignore_start  # gets the server once it serves
    on_changes: Callable[[], None] = _ignore_changes  # called in a thread when objects changed
    clock: Clock = field(default_factory=RealClock)
    rng: random.Random = field(default_factory=random.SystemRandom)  # draws names and uids
    scheme: Scheme = field(default_factory=Scheme)  # of the store
    observer: Observer | None = None  # of the store
    stated_port: int = 0  # what the Service `kubernetes` says, 0 for the one that is served
    linger: float = LINGER  # seconds until idle connections are closed when the server stops


@dataclass(frozen=True)
class ServerOptions:
    """The values of the command's flags."""

    address: Address
    anonymous: bool
    tls: bool
    token_file: Path | None
    kubeconfig: Path | None
    token_auth_file: Path | None = None
    client_ca_file: Path | None = None
    modes: tuple[str, ...] = DEFAULT_MODES
    gates: Mapping[str, bool] = field(default_factory=lambda: feature_gates.DEFAULTS)
    limits: Limits = field(default_factory=Limits)
    kubelet_authority: Path | None = None
    kubelet_client: Certificate | None = None  # what the server presents to kubelets
    cluster_authority: bool = False
    local_storage_class: bool = False
    bootstrap_tokens: bool = False
    admission_config: Path | None = None
    audit_policy: Path | None = None
    audit_log: str = ""  # a path, or - for standard output
    shutdown_delay: float = 0.0  # seconds that the server serves on when it has to stop
    names: tuple[str, ...] = ()  # further names and addresses for the certificate
    endpoint: Address | None = None  # of the load balancer before the servers; port 0 as theirs
    certificate: Certificate | None = None  # to serve with, None for one that is generated
    tokens: TokenFlags = field(default_factory=TokenFlags)
    aggregation: AggregationFlags = field(default_factory=AggregationFlags)
    faults: ServerFaults | None = None  # what a test has happen


def run(settings: Settings, options: ServerOptions, host: Host | None = None) -> None:
    """Serves until a signal comes. Raises ConfigurationError and StoreUnavailable.

    A thread gets no signal. It gets the server by `Host.on_serve`, which is called once the
    kubeconfig is written, and stops it with `ask_to_stop`.
    """
    host = host or Host()
    # first, so that a taken port is reported before anything is written
    with closing(bind(options.address)) as listener:
        folder = settings.state_dir
        users = tokenfile.read(options.token_auth_file) if options.token_auth_file else {}
        with credentials.lock(folder):
            options = _with_authority(options, folder)
            if options.client_ca_file:
                check_authorities(options.client_ca_file)
            token = credentials.load_token(options.token_file or folder / "apiserver-token")
            certificate = options.certificate
            if certificate is None and options.tls:
                hosts = (*_hosts(options), *list_names(settings.service_cluster_ip_range))
                certificate = credentials.certificate(folder, hosts)
            public = url_of(listener, certificate, find_public_endpoint(options))
            tokens = options.tokens.load(folder, public)
        access = AccessRules(token, options.anonymous, _is_loopback(options.address), users)
        with closing(PipelinedIO(settings, name="kcm-apiserver")) as io:
            io.attach()
            store = Store(io, host.clock, host.rng, scheme=host.scheme, observer=host.observer)
            _serve(store, options, access, certificate, listener, tokens=tokens, host=host)


def _with_authority(options: ServerOptions, folder: Path) -> ServerOptions:
    """Returns the options with the cluster's authority, if they ask for one.

    Files that flags name take precedence. Raises ConfigurationError.
    """
    if not options.cluster_authority:
        return options
    authority = credentials.load_authority(folder)
    trusted = [authority.certificate, *filter(None, [options.client_ca_file])]
    options = replace(
        options,
        client_ca_file=credentials.write_client_authorities(folder, *trusted),
        aggregation=options.aggregation.complete(folder),
    )
    if options.kubelet_authority is not None:
        return options
    return replace(
        options,
        kubelet_authority=authority.certificate,
        kubelet_client=credentials.kubelet_client(folder, authority),
    )


def _serve(
    store: Store,
    options: ServerOptions,
    access: AccessRules,
    certificate: Certificate | None,
    listener: socket.socket,
    *,
    tokens: TokenOptions,
    host: Host,
) -> None:
    """Creates the default objects, writes the kubeconfig, and serves until a signal comes."""
    served = certificate.certificate if certificate else None
    peers = Peers(store.io, ServerKeys.read(tokens, options.client_ca_file, served))
    peers.join()
    rbac = ROLES in options.modes
    bootstrap = ClusterBootstrap(
        store,
        roles=rbac,
        joining=options.bootstrap_tokens,
        local_volumes=options.local_storage_class,
        rng=host.rng,
    )
    bootstrap.ensure()
    kubelet = _kubelet_client(options.kubelet_authority, options.kubelet_client)
    config = options.admission_config
    auth = AuthOptions(
        modes=options.modes, tokens=tokens, bootstrap_tokens=options.bootstrap_tokens
    )
    app = ApiServer(
        store,
        access,
        ApiServerOptions(
            auth,
            limits=options.limits,
            gates=options.gates,
            kubelet=kubelet,
            credentials=load_admission_config(config) if config is not None else None,
            aggregation=options.aggregation.load(options.client_ca_file),
            faults=options.faults,
            processes=_heavy_processes(store, options),
            audit=open_trail(options.audit_policy, options.audit_log, store.clock),
        ),
    )
    url = url_of(listener, certificate)
    path = options.kubeconfig or store.io.settings.state_dir / "kubeconfig"
    public_url = url_of(listener, certificate, options.endpoint)
    credentials.write_kubeconfig(path, public_url, access.token, served)
    log.info("Serving the Kubernetes API", url=url, kubeconfig=str(path))
    port = host.stated_port or listener.getsockname()[1]
    service = KubernetesService(store, options.address.host, port)
    contain(service.name, partial(service.turn, 0.0))
    beside = ThreadHost(store.clock)
    beside.run(service, bootstrap, peers, *failover_loops(store.io))
    app.cacher.on_changes = host.on_changes
    server = ApiHttpServer(
        app,
        certificate,
        options.client_ca_file,
        linger=host.linger,
        delay=options.shutdown_delay,
    )
    host.on_serve(server, url)
    try:
        serve(server, app, listener)
    finally:
        beside.stop()


def _heavy_processes(store: Store, options: ServerOptions) -> HeavyProcesses | None:
    """Returns the processes for heavy writes, None for a test, which has its own time and sees
    every write.
    """
    is_plain = isinstance(store.clock, RealClock) and store.observer is None
    if not is_plain or options.faults is not None:
        return None
    return HeavyProcesses(store.io.settings, HEAVY_THREADS)


def _kubelet_client(authority: Path | None, presented: Certificate | None) -> KubeletClient:
    if authority is None:
        return KubeletClient()
    try:
        context = build_context(Trust(authority.read_bytes() or UNUSABLE))
    except (OSError, CallFailed) as error:
        raise errors.ConfigurationError(
            f"--kubelet-certificate-authority {authority} cannot be used: {error}"
        ) from None
    if presented is None:
        return KubeletClient(context)
    try:
        context.load_cert_chain(presented.certificate, presented.key)
    except (OSError, ssl.SSLError) as error:
        raise errors.ConfigurationError(
            f"--kubelet-client-certificate {presented.certificate} cannot be used: {error}"
        ) from None
    return KubeletClient(context, mixed=True)


def _hosts(options: ServerOptions) -> tuple[str, ...]:
    """Returns the names and addresses for the certificate besides those of this machine."""
    host = options.address.host
    named = (options.endpoint.host, *options.names) if options.endpoint else options.names
    return named if host in LOOPBACK_OF_ALL else (host, *named)


def find_public_endpoint(options: ServerOptions) -> Address | None:
    """Returns where those who are not on this machine reach the server, None for where it listens.

    A server that listens everywhere is reached by the first further name of its certificate.
    """
    if options.endpoint is None and options.names and options.address.host in LOOPBACK_OF_ALL:
        return Address(options.names[0], 0)
    return options.endpoint


def _is_loopback(address: Address) -> bool:
    host = f"[{address.host}]" if ":" in address.host else address.host
    return is_loopback_host(host)
