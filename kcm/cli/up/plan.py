"""Builds the command lines of all processes from the options of `kcm up`."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import click

from kcm import errors
from kcm.apiserver.auth import tokenfile
from kcm.apiserver.auth.authenticators import check_authorities
from kcm.apiserver.auth.authorizer import DEFAULT_MODES, parse_modes
from kcm.apiserver.credentials import Certificate, FrontProxy
from kcm.cli import commandlines
from kcm.cli.up.children import ProcessSpec
from kcm.options.commandline import parse_flags
from kcm.options.groups import GenericOptions
from kcm.options.manager import ManagerOptions, is_controller_enabled, resolve_names
from kcm.redisio.embedded import EmbeddedServer, require_free_port
from kcm.registry import controller_types
from kcm.settings import Settings
from kcm.simulation.scripting import stages

REDIS_STAGE = 1  # stopped after everything that needs it
FLOWER_USER = "kcm"
CLOUD, CLOUD_ENV = "sim", "KCM_CLOUD_PROVIDER"  # the manager's flag --cloud-provider
PREFORK, THREADS = "prefork", "threads"  # pools of Celery
HEALTH_ENV = "KCM_SECURE_PORT"  # the manager's flag --secure-port
PROCESS = "kcm.dev/process"  # the label and the taint of a real node that runs processes
CONTAINERS = "kcm.dev/containers"  # the label of one that runs containers
CRI = "cri"  # the value of --runtime for containers
ENDPOINT_FLAG = "--container-runtime-endpoint"
DEFAULT_ENDPOINT = "unix:///run/containerd/containerd.sock"
DEMO_GRACE = 10  # the grace period of nodes with --demo, in seconds
# A lease is renewed every quarter of its duration, well within the grace period.
DEMO_NODE_FLAGS = (
    "--node-lease-duration-seconds=8",
    f"--node-monitor-grace-period={DEMO_GRACE}s",
    "--metric-resolution=1s",
)


@dataclass(frozen=True)
class AccessOptions:
    """The API server's flags about authentication and authorization."""

    token_auth_file: Path | None = None
    client_ca_file: Path | None = None
    token_key_file: Path | None = None  # signs service account tokens
    kubelet_client: Certificate | None = None  # what the API server presents to kubelets
    kubelet_authority: Path | None = None  # signs the certificates of kubelets
    front_proxy: FrontProxy | None = None  # what the API server shows to other API servers
    anonymous_auth: bool = False
    authorization_mode: str = ",".join(DEFAULT_MODES)
    admission_config: Path | None = None  # credentials for webhooks
    hosts: tuple[str, ...] = ()  # by which other machines reach the API server

    def check(self) -> None:
        """Raises ConfigurationError if a file cannot be used."""
        parse_modes(self.authorization_mode)
        if self.token_auth_file:
            tokenfile.read(self.token_auth_file)
        if self.client_ca_file:
            check_authorities(self.client_ca_file)

    def flags(self) -> list[str]:
        """Returns the flags for the API server's command line."""
        flags = [f"--authorization-mode={self.authorization_mode}"]
        if self.hosts:
            flags += ["--bind-address=0.0.0.0", *(f"--tls-san={host}" for host in self.hosts)]
        if self.token_auth_file:
            flags.append(f"--token-auth-file={self.token_auth_file.absolute()}")
        if self.admission_config:
            flags.append(f"--admission-control-config-file={self.admission_config.absolute()}")
        if self.client_ca_file:
            flags.append(f"--client-ca-file={self.client_ca_file.absolute()}")
        if key := self.token_key_file:
            flags.append(f"--service-account-signing-key-file={key}")
            flags.append(f"--service-account-key-file={key}")
        if (client := self.kubelet_client) and self.kubelet_authority:
            flags.append(f"--kubelet-client-certificate={client.certificate}")
            flags.append(f"--kubelet-client-key={client.key}")
            flags.append(f"--kubelet-certificate-authority={self.kubelet_authority}")
        if proxy := self.front_proxy:
            flags.append(f"--proxy-client-cert-file={proxy.client.certificate}")
            flags.append(f"--proxy-client-key-file={proxy.client.key}")
            flags.append(f"--requestheader-client-ca-file={proxy.authority}")
        return [*flags, "--anonymous-auth"] if self.anonymous_auth else flags


@dataclass(frozen=True)
class RealNode:
    """The node of this machine, which a kubelet runs."""

    name: str
    flags: tuple[str, ...] = ()  # more flags of `kcm kubelet`
    api_flags: tuple[str, ...] = ()  # its flags about the API server
    endpoint: str = ""  # of the container runtime; "" for processes

    def root(self, settings: Settings) -> Path:
        """Returns the root folder of the node's kubelet."""
        return settings.state_dir / "kubelet" / self.name

    def arguments(self, settings: Settings) -> list[str]:
        """Returns the arguments of `kcm kubelet`.

        A taint keeps pods that are meant for containers off a node of processes. There is no
        threshold for disk space, as in kind, since developers' disks are often nearly full.
        """
        kind = [
            f"--node-labels={PROCESS}=true",
            f"--register-with-taints={PROCESS}=true:NoSchedule",
        ]
        if self.endpoint:
            kind = [
                f"--node-labels={CONTAINERS}=true",
                f"{ENDPOINT_FLAG}={self.endpoint}",
                "--image-gc-high-threshold=100",
            ]
        return [
            f"--node-name={self.name}",
            f"--root-dir={self.root(settings)}",
            *kind,
            "--eviction-hard=memory.available<100Mi",
            "--port=0",
            "--end-containers",
            *self.api_flags,
            *self.flags,
        ]


@dataclass(frozen=True)
class UpOptions:
    """The options of `kcm up`."""

    redis_port: int = 0
    flower_port: int = 5555
    workers: int = 1
    concurrency: int | None = None  # None: what suits the pool
    pool: str | None = None  # None: threads
    health_port: int = 10257
    api_port: int = 8001
    # the manager's flags as environment variables
    manager: Mapping[str, str] = field(default_factory=dict)
    access: AccessOptions = field(default_factory=AccessOptions)
    nodes: int = 0  # the number of simulated nodes
    node_flags: tuple[str, ...] = ()  # more flags of `kcm nodes`
    real_node: RealNode | None = None
    local_storage_class: bool = True

    def with_manager_flags(self, flags: Sequence[str]) -> UpOptions:
        """Returns these options with the manager's flags, whose --secure-port takes precedence.

        Raises ConfigurationError for an invalid flag, and SystemExit after --help.
        """
        own = [f"--secure-port={self.health_port}", f"--cloud-provider={_default_cloud()}"]
        environment = manager_environment([*own, *flags])
        return replace(self, manager=environment, health_port=int(environment[HEALTH_ENV]))


def with_nodes(
    options: UpOptions,
    count: int,
    file: Path | None,
    *,
    short_times: bool,
    programs: bool = False,
) -> UpOptions:
    """Returns the options with `count` simulated nodes and the stages file `file`.

    With `programs`, their containers do what their commands say.

    Raises ConfigurationError for an invalid file.
    """
    flags = list(DEMO_NODE_FLAGS if short_times else ())
    if file is not None:
        stages.load(file)
        flags.append(f"--stages={file.absolute()}")
    if programs:
        flags.append("--programs")
    return replace(options, nodes=count, node_flags=tuple(flags))


def choose_endpoint(runtime: str | None, endpoint: str | None, *, kubelet: bool) -> str:
    """Returns where the container runtime of the machine's node listens, "" for processes.

    `runtime` and `endpoint` are None where their flags are not given; the endpoint's alone means
    containers. Raises ConfigurationError if a flag would have no effect.
    """
    if not kubelet and (runtime == CRI or endpoint is not None):
        flag = f"--runtime {CRI}" if endpoint is None else ENDPOINT_FLAG
        raise errors.ConfigurationError(f"{flag} has no effect with --no-kubelet")
    if endpoint is not None and runtime not in (None, CRI):
        raise errors.ConfigurationError(f"{ENDPOINT_FLAG} has no effect with --runtime {runtime}")
    return endpoint or DEFAULT_ENDPOINT if runtime == CRI or endpoint is not None else ""


def with_real_node(options: UpOptions, *, endpoint: str, short_times: bool) -> UpOptions:
    """Returns the options with this machine as a node, named after the machine.

    `endpoint` is that of the container runtime, "" for processes. Raises ConfigurationError if
    nothing can be there.
    """
    socket_path = Path(endpoint.removeprefix("unix://"))
    if endpoint and not socket_path.is_socket():
        raise errors.ConfigurationError(
            f"--runtime cri: there is no socket {socket_path}; is the container runtime installed "
            f"and running? ({ENDPOINT_FLAG})"
        )
    if endpoint and os.geteuid() != 0:
        raise errors.ConfigurationError("--runtime cri: only root can run containers")
    flags = (DEMO_NODE_FLAGS[0],) if short_times else ()
    node = RealNode(machine_name(socket.gethostname()), flags, endpoint=endpoint)
    return replace(options, real_node=node)


def machine_name(host: str) -> str:
    """Returns the node name for a host.

    It is `real` if the host's name is not valid for a node, or looks like that of a simulated node.
    """
    name = host.lower().partition(".")[0]
    usable = re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name, re.ASCII)
    return name if usable and not re.fullmatch(r"node-[0-9]+", name) else "real"


def check_ports(options: UpOptions) -> None:
    """Raises ConfigurationError, which names port and flag, if a port is taken."""
    require_free_port(options.redis_port, "--redis-port")  # 0 is always free
    require_free_port(options.flower_port, "--flower-port")
    require_free_port(options.health_port, "--health-port")
    require_free_port(options.api_port, "--api-port")


def manager_environment(flags: Sequence[str]) -> dict[str, str]:
    """Returns the manager's flags as environment variables, which every process of kcm reads.

    Raises ConfigurationError for an invalid flag, and SystemExit after the manager's --help.
    """
    try:
        return ManagerOptions.load(parse_flags(flags)).to_environment()
    except click.exceptions.Exit as help_was_printed:
        raise SystemExit(help_was_printed.exit_code) from None
    except click.ClickException as error:
        raise errors.ConfigurationError(error.format_message()) from error


def redis_spec(server: EmbeddedServer) -> ProcessSpec:
    """Returns the process of the embedded server.

    Raises ConfigurationError if the path of its socket is too long.
    """
    server.prepare()
    return ProcessSpec(
        "redis", server.command(), server.log_file, stage=REDIS_STAGE, writes_own_log=True
    )


def process_specs(options: UpOptions, settings: Settings) -> list[ProcessSpec]:
    """Returns the processes of the manager, workers, beat, Flower, API server and nodes."""
    env = {
        CLOUD_ENV: _default_cloud(),
        **options.manager,
        HEALTH_ENV: str(options.health_port),
        "KCM_STATE_DIR": str(settings.state_dir),
        "KCM_FLOWER_PORT": str(options.flower_port),
        "PYTHONUNBUFFERED": "1",
    }
    generic = ManagerOptions.load({}, {**os.environ, **env}).generic
    pool = options.pool or THREADS
    shares_caches = pool != PREFORK  # a worker whose syncs run in its own process is the manager
    elsewhere = bool(generic.kubeconfig)
    concurrency = options.concurrency or _default_concurrency(pool, elsewhere=elsewhere)
    has_manager = settings.worker_manager and not shares_caches
    env["KCM_WORKER_MANAGER"] = str(settings.worker_manager and shares_caches).lower()
    logs = settings.state_dir / "log"
    specs = []
    if has_manager:
        specs.append(ProcessSpec("manager", commandlines.manager(), logs / "manager.log", env=env))
    specs.append(ProcessSpec("beat", commandlines.beat(), logs / "beat.log", env=env))
    for number in range(1, options.workers + 1):
        name = "worker" if options.workers == 1 else f"worker{number}"
        arguments = ["-n", f"{name}@%h", "-c", str(concurrency), "-P", pool]
        command = commandlines.worker(arguments)
        specs.append(ProcessSpec(name, command, logs / f"{name}.log", env=env))
    if options.flower_port:
        specs.append(ProcessSpec("flower", commandlines.flower(), logs / "flower.log", env=env))
    if options.api_port:
        flags = [f"--port={options.api_port}", "--enable-bootstrap-token-auth"]
        flags += ["--local-storage-class"] if options.local_storage_class else []
        flags += options.access.flags()
        command = commandlines.apiserver(flags)
        specs.append(ProcessSpec("apiserver", command, logs / "apiserver.log", env=env))
    if options.nodes:
        external = ["--cloud-provider=external"] if _initializes_nodes(env, generic) else []
        count = f"--count={options.nodes}"
        command = commandlines.nodes([count, *external, *options.node_flags])
        specs.append(ProcessSpec("nodes", command, logs / "nodes.log", env=env))
    if options.real_node:
        command = commandlines.node(options.real_node.arguments(settings))
        specs.append(ProcessSpec("kubelet", command, logs / "kubelet.log", env=env))
    return specs


def _default_concurrency(pool: str, *, elsewhere: bool) -> int:
    """Returns how many syncs a worker runs at a time. If the objects are elsewhere, behind another
    API server, syncs mostly wait for it.
    """
    if pool == PREFORK:
        return 2
    return 16 if elsewhere else 4


def _default_cloud() -> str:
    """Returns the cloud provider unless a flag of the manager says otherwise."""
    return os.environ.get(CLOUD_ENV) or CLOUD


def _initializes_nodes(environment: Mapping[str, str], generic: GenericOptions) -> bool:
    """Reports whether the cloud-node controller runs, for which nodes can wait."""
    if environment[CLOUD_ENV] != CLOUD:
        return False
    wanted = resolve_names(generic.controllers, controller_types())
    return is_controller_enabled("cloud-node-controller", (), wanted)


def absolute(settings: Settings) -> Settings:
    """Returns the settings with an absolute state folder, for child processes.

    Raises ConfigurationError if it is a file.
    """
    path = Path(settings.state_dir).absolute()
    if settings.redis_url == "" and path.exists() and not path.is_dir():
        raise errors.ConfigurationError(f"the state folder {path} is not a folder")
    return settings.model_copy(update={"state_dir": path})
