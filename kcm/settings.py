"""The settings that all processes share, read from `KCM_*` environment variables.

Only settings on which all processes must agree are here; the options of controllers are flags of
the controller manager (`kcm manager --help`). The description of each field has its meaning, unit
and default, and `docs/configuration.md` is generated from them.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


def _default_state_dir() -> Path:
    return Path.cwd() / ".kcm"


class Settings(BaseSettings):
    """The settings that all processes share, such as how to connect to Redis."""

    model_config = SettingsConfigDict(env_prefix="KCM_", frozen=True)

    redis_url: str = Field(
        default="",
        description="URL of the Redis or Valkey server (`redis://`, `rediss://`, `unix://`, "
        "`sentinel://host:port,host:port/service`, `rediss+sentinel://`). Empty: the embedded "
        "server in the state folder.",
    )
    prefix: str = Field(
        default="kcm",
        description="First part of every key, so that several kcm can share a server.",
    )
    state_dir: Path = Field(
        default_factory=_default_state_dir,
        description="State folder: the embedded server's data and socket, passwords, logs.",
    )
    service_cluster_ip_range: str = Field(
        default="10.96.0.0/12",
        description="Addresses that Services get, kube-apiserver's `--service-cluster-ip-range`. "
        "The first one is that of the service `kubernetes`.",
    )
    service_node_port_range: str = Field(
        default="30000-32767",
        description="Ports that Services of type NodePort and LoadBalancer get on every node, "
        "first and last, kube-apiserver's `--service-node-port-range`.",
    )
    disable_admission_plugins: str = Field(
        default="",
        description="Names of admission plugins that no write passes, separated by commas, "
        "kube-apiserver's `--disable-admission-plugins`, such as `ServiceAccount,Priority`.",
    )
    default_not_ready_toleration_seconds: int = Field(
        default=300,
        ge=0,
        description="Seconds that pods stay on a node that is not ready, unless they have a "
        "toleration of their own, kube-apiserver's `--default-not-ready-toleration-seconds`.",
    )
    default_unreachable_toleration_seconds: int = Field(
        default=300,
        ge=0,
        description="The same for a node that is unreachable, "
        "`--default-unreachable-toleration-seconds`.",
    )
    socket_timeout: float = Field(
        default=3.0,
        gt=0,
        description="Seconds until an unanswered Redis call fails. Below the 4 s of the internal "
        "leases, so that their holder notices a dead connection in time.",
    )
    connect_timeout: float = Field(
        default=3.0, gt=0, description="Seconds until a connection attempt fails."
    )
    health_check_interval: float = Field(
        default=3.0,
        ge=0,
        description="Seconds of idleness after which a connection is tested before use.",
    )
    redis_durability: str = Field(
        default="local",
        pattern="^(local|replicated)$",
        description="What an acknowledged write of an object has reached. `local`: the master, so "
        "a failover may lose the last ones. `replicated`: `KCM_REDIS_REPLICAS` replicas as well.",
    )
    redis_replicas: int = Field(
        default=1,
        ge=1,
        description="With `replicated`, the least number of replicas that must have a write of an "
        "object before it is acknowledged. All that were in step within the last 15 s must have it "
        "in any case.",
    )
    admission_kubeconfig: str = Field(
        default="",
        description="Kubeconfig of the API server through which controllers write what webhooks "
        "and admission policies are about. Empty: `kubeconfig` in the state folder, if it is "
        "there. `none`: controllers pass webhooks and policies by.",
    )
    worker_manager: bool = Field(
        default=True,
        description="Whether a Celery worker has a manager: a process beside it, or itself if its "
        "pool is `threads` or `solo`. False if `kcm manager` runs on its own.",
    )
    log_format: str = Field(
        default="console", pattern="^(console|json)$", description="`console` or `json`."
    )
    log_level: str = Field(
        default="info",
        pattern="^(debug|info|warning|error)$",
        description="Least severe level that is logged.",
    )

    @cached_property
    def socket_path(self) -> Path:
        """The path of the embedded server's Unix socket."""
        return self.state_dir / "run" / "redis.sock"

    @cached_property
    def password_file(self) -> Path:
        """The path of the embedded server's password file.

        The file exists while the embedded server has a port (Redis has no ACL per listener).
        """
        return self.state_dir / "redis-password"

    @cached_property
    def effective_redis_url(self) -> str:
        """`redis_url`, or the URL of the embedded server's socket, with its password if it has
        one.
        """
        if self.redis_url:
            return self.redis_url
        password = f":{self.password_file.read_text()}@" if self.password_file.exists() else ""
        return f"unix://{password}{self.socket_path.absolute()}"
