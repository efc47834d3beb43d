"""What `kcm up` runs: from its options to command lines."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import click

from kcm import errors
from kcm.cli import commandlines
from kcm.cli.up.children import Spec
from kcm.redisio.embedded import EmbeddedServer, require_free_port
from kcm.settings import Settings

REDIS_STAGE = 1  # ends after everything that needs it
FLOWER_USER = "kcm"
HEALTH_ENV = "KCM_SECURE_PORT"  # the manager's flag --secure-port


@dataclass(frozen=True)
class UpOptions:
    """The options of `kcm up`."""

    redis_port: int = 0
    flower_port: int = 5555
    workers: int = 1
    concurrency: int = 2
    pool: str = "prefork"
    health_port: int = 10257
    api_port: int = 8001
    manager: Mapping[str, str] = field(default_factory=dict)  # the manager's flags as environment

    def with_manager_flags(self, flags: Sequence[str]) -> UpOptions:
        """These options, and the manager's; a --secure-port among those wins.

        Raises: ConfigurationError for a flag that is wrong; SystemExit after --help.
        """
        found = manager_environment([f"--secure-port={self.health_port}", *flags])
        return replace(self, manager=found, health_port=int(found[HEALTH_ENV]))


def check_ports(options: UpOptions) -> None:
    """Raise ConfigurationError, naming port and flag, when one is taken."""
    if options.redis_port:
        require_free_port(options.redis_port, "--redis-port")
    if options.flower_port:
        require_free_port(options.flower_port, "--flower-port")
    if options.health_port:
        require_free_port(options.health_port, "--health-port")
    if options.api_port:
        require_free_port(options.api_port, "--api-port")


def manager_environment(flags: Sequence[str]) -> dict[str, str]:
    """The manager's flags as environment variables, read by the manager's own parser.

    A process of its own reads them, since the commands know nothing of the manager.
    Raises: ConfigurationError for a flag that is wrong; SystemExit after its --help.
    """
    command = commandlines.manager_flags(flags)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise errors.ConfigurationError(done.stderr.strip() or "the manager's flags are wrong")
    if not done.stdout.startswith("{"):
        click.echo(done.stdout, nl=False)
        raise SystemExit(0)
    environment: dict[str, str] = json.loads(done.stdout)
    return environment


def redis_spec(server: EmbeddedServer) -> Spec:
    """The embedded server. Raises: ConfigurationError for a socket path too long."""
    server.prepare()
    return Spec("redis", server.command(), server.log_file, stage=REDIS_STAGE, writes_own_log=True)


def process_specs(options: UpOptions, settings: Settings) -> list[Spec]:
    """Workers, beat, Flower and the API server."""
    env = {
        **options.manager,
        HEALTH_ENV: str(options.health_port),
        "KCM_STATE_DIR": str(settings.state_dir),
        "KCM_FLOWER_PORT": str(options.flower_port),
        "PYTHONUNBUFFERED": "1",
    }
    logs = settings.state_dir / "log"
    specs = [Spec("beat", commandlines.beat(), logs / "beat.log", env=env)]
    for number in range(1, options.workers + 1):
        name = "worker" if options.workers == 1 else f"worker{number}"
        command = commandlines.worker(_worker_arguments(name, options))
        specs.append(Spec(name, command, logs / f"{name}.log", env=env))
    if options.flower_port:
        specs.append(Spec("flower", commandlines.flower(), logs / "flower.log", env=env))
    if options.api_port:
        command = commandlines.apiserver([f"--port={options.api_port}"])
        specs.append(Spec("apiserver", command, logs / "apiserver.log", env=env))
    return specs


def _worker_arguments(name: str, options: UpOptions) -> list[str]:
    return ["-n", f"{name}@%h", "-c", str(options.concurrency), "-P", options.pool]


def absolute(settings: Settings) -> Settings:
    """The settings with an absolute state folder, which child processes get."""
    path = Path(settings.state_dir).absolute()
    if settings.redis_url == "" and path.exists() and not path.is_dir():
        raise errors.ConfigurationError(f"the state folder {path} is not a folder")
    return settings.model_copy(update={"state_dir": path})
