"""The command `kcm up`."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import click

from kcm.apiserver.auth import flags
from kcm.cli.main import use_state_dir
from kcm.cli.up import demo as demonstration
from kcm.cli.up import ready
from kcm.cli.up.banner import banner
from kcm.cli.up.children import Child
from kcm.cli.up.folder import StateFolder
from kcm.cli.up.identity import with_identity
from kcm.cli.up.plan import (
    CRI,
    DEFAULT_ENDPOINT,
    ENDPOINT_FLAG,
    HEALTH_ENV,
    AccessOptions,
    UpOptions,
    absolute,
    check_ports,
    choose_endpoint,
    process_specs,
    redis_spec,
    with_nodes,
    with_real_node,
)
from kcm.cli.up.supervisor import UpSupervisor
from kcm.redisio import RedisIO
from kcm.redisio.checks import check_server, server_version
from kcm.redisio.embedded import EmbeddedServer
from kcm.settings import Settings

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_DISPATCHED = "pods"  # the kind by whose dispatch lease a running manager is recognized


@click.command()
@click.option(
    "--state-dir",
    metavar="DIR",
    expose_value=False,
    callback=use_state_dir,
    help="State folder: data, socket, passwords, logs. Default: KCM_STATE_DIR or .kcm here.",
)
@click.option(
    "--redis-port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Let the embedded server listen on this loopback port, too. Then it requires a password, "
    "also on the socket. 0: socket only.",
)
@click.option(
    "--flower-port",
    type=click.IntRange(0, 65535),
    default=5555,
    show_default=True,
    help="Flower's loopback port. 0: no Flower.",
)
@click.option(
    "--health-port",
    type=click.IntRange(0, 65535),
    default=10257,
    show_default=True,
    envvar=HEALTH_ENV,
    help="The manager's loopback port for health and metrics. 0: none.",
)
@click.option(
    "--api-port",
    type=click.IntRange(0, 65535),
    default=8001,
    show_default=True,
    help="The Kubernetes API's loopback port, for kubectl. 0: no API server.",
)
@click.option(
    "--api-host",
    "api_hosts",
    multiple=True,
    metavar="NAME",
    help="A name or address by which other machines reach this one. The Kubernetes API then "
    "listens on all addresses, and its certificate has the name. May be given several times.",
)
@flags.token_auth_file
@flags.client_ca_file
@flags.anonymous_auth
@flags.authorization_mode
@flags.admission_control_config_file
@click.option(
    "--nodes",
    "nodes_count",
    type=click.IntRange(0, 100_000),
    default=5,
    show_default=True,
    help="Simulated nodes, in the zones a, b and c. 0: none.",
)
@click.option(
    "--kubelet/--no-kubelet",
    default=True,
    show_default=True,
    help="Make this machine a node, too: pods that tolerate kcm.dev/process run on it as "
    "processes of this user, and are killed at Ctrl-C.",
)
@click.option(
    "--runtime",
    type=click.Choice(("process", CRI)),
    help="What that node runs: processes, or containers of a runtime that speaks CRI v1, as "
    "containerd does. Containers need root and kcm[cri], and their node has no taint. Default: "
    f"process, or cri with {ENDPOINT_FLAG}.",
)
@click.option(
    ENDPOINT_FLAG,
    metavar="unix://PATH",
    help=f"Where that runtime listens. Default: {DEFAULT_ENDPOINT}.",
)
@click.option(
    "--local-storage-class/--no-local-storage-class",
    default=True,
    show_default=True,
    help="Have a StorageClass `local`, the default, whose volumes are folders on nodes.",
)
@click.option("--nodes-stages", type=click.Path(path_type=Path), metavar="FILE",
              help="What simulated pods and nodes do; see kcm nodes stages.")  # fmt: skip
@click.option(
    "--nodes-programs",
    is_flag=True,
    help="Let simulated containers do what their commands say, as far as that is understood; see "
    "kcm nodes --help.",
)
@click.option(
    "--demo",
    is_flag=True,
    help="Use short times: a stopped node is unreachable after 10 s, its pods are evicted soon.",
)
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 256),
    help="Syncs that one worker runs at a time. Default: 4, or 2 with prefork, or 16 in threads if "
    "the objects are behind another API server.",
)
@click.option(
    "--pool",
    type=click.Choice(("prefork", "threads", "solo")),
    help="Celery's pool in which a worker runs them. Threads share one set of caches with the "
    "manager; prefork has a process and caches for each sync. Default: threads.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show all logs here, too.")
@click.argument("manager_flags", nargs=-1, type=click.UNPROCESSED, metavar="[-- MANAGER FLAGS]")
def up(
    *,
    redis_port: int,
    flower_port: int,
    health_port: int,
    api_port: int,
    api_hosts: tuple[str, ...],
    token_auth_file: Path | None,
    client_ca_file: Path | None,
    anonymous_auth: bool,
    authorization_mode: str,
    admission_control_config_file: Path | None,
    nodes_count: int,
    kubelet: bool,
    runtime: str | None,
    container_runtime_endpoint: str | None,
    local_storage_class: bool,
    nodes_stages: Path | None,
    nodes_programs: bool,
    demo: bool,
    workers: int,
    concurrency: int | None,
    pool: str | None,
    verbose: bool,
    manager_flags: tuple[str, ...],
) -> None:
    """Start everything on this machine, until Ctrl-C.

    Runs a private Redis-compatible server in the state folder (unless
    KCM_REDIS_URL names one), workers, the manager, beat, Flower, the Kubernetes
    API server, simulated nodes, and a kubelet for this machine. Processes that
    exit are restarted. Ctrl-C stops everything within 5 s, containers included.
    The objects are kept for the next start.

    \b
    Examples:
      kcm up
      kcm up --workers 2 --concurrency 4 --verbose
      kcm up --redis-port 6379 --flower-port 5556
      kcm up --token-auth-file users.csv
      kcm up --nodes 30 --demo
      kcm up --runtime cri --nodes 0
      kcm up -- --terminated-pod-gc-threshold=100 --controllers='*,-podgc'
    """
    access = AccessOptions(
        token_auth_file,
        client_ca_file,
        anonymous_auth=anonymous_auth,
        authorization_mode=authorization_mode,
        admission_config=admission_control_config_file,
        hosts=api_hosts,
    )
    access.check()
    options = UpOptions(
        redis_port, flower_port, workers, concurrency, pool, health_port, api_port,
        access=access, local_storage_class=local_storage_class)  # fmt: skip
    options = with_nodes(
        options, nodes_count, nodes_stages, short_times=demo, programs=nodes_programs
    )
    endpoint = choose_endpoint(runtime, container_runtime_endpoint, kubelet=kubelet)
    if kubelet:
        options = with_real_node(options, endpoint=endpoint, short_times=demo)
    given = demonstration.manager_flags(manager_flags) if demo else list(manager_flags)
    if given:
        options = options.with_manager_flags(given)
    if demo:
        options = replace(options, manager={**demonstration.SETTINGS, **options.manager})
    settings = absolute(Settings())
    UpRun(settings, options, verbose).run()


class UpRun:
    """One run of `kcm up`."""

    def __init__(self, settings: Settings, options: UpOptions, verbose: bool) -> None:
        self._settings = settings
        self._options = options
        self._verbose = verbose
        self._started = time.monotonic()
        self._folder = StateFolder(settings.state_dir)
        self._supervisor = UpSupervisor(self._folder, click.echo)

    def run(self) -> None:
        """Starts everything, supervises it and stops it.

        Raises ConfigurationError, and KcmError if a process does not become ready.
        """
        self._folder.claim()
        for left in self._folder.stop_leftovers():
            click.echo(f"stopped {left}, which an earlier `kcm up` left running")
        check_ports(self._options)
        for number in _SIGNALS:
            signal.signal(number, self._supervisor.interrupt)
        try:
            if self._start():
                self._supervise()
        finally:
            self._stop()

    def _start(self) -> bool:
        """Starts everything in order. Returns False if it was interrupted."""
        if not self._start_server():
            return False
        with closing(RedisIO(self._settings)) as io:
            for warning in check_server(io):
                click.echo(f"warning: {warning}")
            before = ready.dispatch_tokens(io, [_DISPATCHED])[0]
            server = server_version(io)
        self._progress(server)
        self._options = with_identity(self._options, self._settings)
        # Without an open connection, since these processes may be forks of this one.
        for spec in process_specs(self._options, self._settings):
            self._supervisor.add(spec)
        with closing(RedisIO(self._settings)) as io:
            if not self._wait_for_processes(io, before):
                return False
        self._announce(server)
        return True

    def _start_server(self) -> bool:
        if not self._settings.redis_url:
            server = EmbeddedServer(self._settings.state_dir, self._options.redis_port)
            self._supervisor.add(redis_spec(server))
            # The password's file is written by now, and the settings read it once.
            self._settings = absolute(Settings())
        answers = ready.store_answers(self._settings)
        return ready.wait_for(answers, ready.STORE_TIMEOUT, "Redis", self._between)

    def _wait_for_processes(self, io: RedisIO, before: str) -> bool:
        options = self._options
        checks: Sequence[tuple[str, ready.Check]] = [
            ("manager", ready.dispatches(io, _DISPATCHED, before)),
            ("worker", ready.workers_listen(io, options.workers)),
        ]
        if options.nodes:
            checks = [*checks, ("nodes", ready.nodes_registered(io, options.nodes))]
        if options.real_node:
            checks = [*checks, ("kubelet", ready.node_registered(io, options.real_node.name))]
        if options.health_port:
            health = ready.http_answers(options.health_port, "/readyz")
            checks = [*checks, ("health", health)]
        if options.flower_port:
            flower = ready.http_answers(options.flower_port, "/healthcheck")
            checks = [*checks, ("Flower", flower)]
        if options.api_port:
            certificate = self._settings.state_dir / "apiserver.crt"
            api = ready.https_answers(options.api_port, "/readyz", certificate)
            checks = [*checks, ("API server", api)]
        for name, check in checks:
            if not ready.wait_for(check, ready.START_TIMEOUT, name, self._between):
                return False
            self._progress(name)
        return True

    def _between(self) -> bool:
        self._supervisor.require_alive()
        return self._supervisor.stopping.is_set()

    def _progress(self, step: str) -> None:
        click.echo(f"{step} ready after {time.monotonic() - self._started:.1f} s")

    def _announce(self, server: str) -> None:
        password = self._settings.state_dir / "flower-password"
        click.echo(banner(self._settings, self._options, server, password))

    def _supervise(self) -> None:
        tail = Tail(self._supervisor.children, click.echo) if self._verbose else None
        self._supervisor.run(tail.look if tail else lambda: None)

    def _stop(self) -> None:
        started = time.monotonic()
        click.echo("Stopping ...")
        self._supervisor.stop()
        self._kill_containers()
        self._folder.release()
        click.echo(f"Stopped in {time.monotonic() - started:.1f} s.")

    def _kill_containers(self) -> None:
        """Kills the containers that a killed kubelet has left running."""
        node = self._options.real_node
        if node is not None and node.root(self._settings).is_dir():
            from kcm.kubelet.runtime.ending import end_node  # noqa: PLC0415 - only at the end

            if ended := end_node(node.root(self._settings)):
                click.echo(f"killed {ended} containers that the kubelet left running")


# --- Shows new lines of the logs, for `kcm up --verbose`.


class Tail:
    """Passes lines of the children's logs to `report`, each with its child's name.

    What the Redis server says of its own start is left out.
    """

    def __init__(self, children: Sequence[Child], report: Callable[[str], None]) -> None:
        self._children = children
        self._report = report
        self._read = {c.spec.name: _size(c.spec.log) for c in children if c.spec.name == "redis"}

    def look(self) -> None:
        """Reports the complete lines that were written since the last call."""
        for child in self._children:
            name, log = child.spec.name, child.spec.log
            if not log.exists():
                continue
            start = self._read.setdefault(name, child.log_start)
            if log.stat().st_size < start:  # the log was rotated
                start = 0
            with log.open("rb") as file:
                file.seek(start)
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._read[name] = start + len(whole)
            for line in whole.decode(errors="replace").splitlines():
                self._report(f"{name:>8} | {line}")


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0
