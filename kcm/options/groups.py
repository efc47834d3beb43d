"""The manager's own options in typed groups. Each field becomes a flag.

Names, meanings and defaults are those of kube-controller-manager 1.33 unless the field says
otherwise. Source: cmd/kube-controller-manager/app/options, staging/src/k8s.io/component-base/config
and apiserver/pkg/server/options.
"""

from __future__ import annotations

import ipaddress
from datetime import timedelta
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from kcm import errors
from kcm.apimachinery.durations import GoDuration
from kcm.coordination import LeaderElectionConfig

NEVER_NEGATIVE = timedelta(0)


def option(default: Any, meaning: str, *, flag: str = "", **limits: Any) -> Any:
    """Returns a field with its description. `flag` is its flag's name if that differs from the
    field's.
    """
    extra: JsonDict | None = {"flag": flag} if flag else None
    return Field(default=default, description=meaning, json_schema_extra=extra, **limits)


class Group(BaseModel):
    """The base class of the groups of options."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class GenericOptions(Group):
    """Options for all controllers."""

    controllers: tuple[str, ...] = option(
        ("*",),
        "A list of controllers to enable. '*' enables all on-by-default controllers, 'foo' "
        "enables the controller named 'foo', '-foo' disables the controller named 'foo'; '-*' "
        "alone enables none. Names since 1.27 (replicaset-controller), also without their ending, "
        "and before (replicaset) work.",
    )
    controller_start_interval: GoDuration = option(
        timedelta(0),
        "Interval between starting controllers; each wait is lengthened at random, up to twofold.",
        ge=NEVER_NEGATIVE,
    )
    min_resync_period: GoDuration = option(
        timedelta(hours=12),
        "The resync period of the caches' handlers is random between this and twice this. 0 "
        "turns resyncs off.",
        ge=NEVER_NEGATIVE,
    )
    event_ttl: GoDuration = option(
        timedelta(hours=1), "Amount of time to retain Events.", gt=timedelta(0)
    )
    controller_modules: tuple[str, ...] = option(
        (),
        "Python file or module with controllers of your own, in addition to those built in. May be "
        "repeated; workers and beat need it as well.",
        flag="controller-module",
    )

    kubeconfig: str = option(
        "",
        "Path to kubeconfig file with authorization and master location information, or "
        "'in-cluster' for the service account of the pod that it runs in. The "
        "controllers then work on the objects of that API server instead of those in Redis, "
        "which keeps the work queues. Workers and beat need it as well.",
    )
    kube_api_qps: float = option(
        0.0,
        "QPS to use while talking with the API server that --kubeconfig names, for each client of "
        "each process. 0 is no limit: the server's own flow control decides.",
        ge=0,
    )
    kube_api_burst: int = option(
        30, "Burst to use while talking with the API server that --kubeconfig names.", ge=1
    )
    use_service_account_credentials: bool = option(
        False,
        "If true, use individual service account credentials for each controller on the API server "
        "that --kubeconfig names.",
    )


class LeaderElectionOptions(Group):
    """Options of the election that lets only one of several managers be active.

    Unlike upstream, it is off by default over kcm's own store: leases of 4 s decide which manager
    dispatches a kind and which one ingests, and fences protect every write, so several managers may
    be active. With an election, the gap after a crash would last for the lease duration. With
    --kubeconfig it is on: another API server has no fences, and a manager of its own.
    """

    leader_elect: bool = option(
        False,
        "Start a leader election client and gain leadership before the manager dispatches, "
        "ingests, pumps and reaps. Not needed for high availability: several active managers "
        "share the work under fenced leases of 4 s. With --kubeconfig the default is true.",
    )
    lease_duration: GoDuration = option(
        timedelta(seconds=15),
        "How long non-leader candidates wait after the last renewal that they saw before they "
        "try to take over.",
        flag="leader-elect-lease-duration",
    )
    renew_deadline: GoDuration = option(
        timedelta(seconds=10),
        "How long the leader tries to renew before it stops leading. Below the lease duration.",
        flag="leader-elect-renew-deadline",
    )
    retry_period: GoDuration = option(
        timedelta(seconds=2),
        "How long clients wait between attempts to acquire or renew leadership.",
        flag="leader-elect-retry-period",
    )
    resource_lock: str = option(
        "leases",
        "The type of resource that is used for locking: only 'leases'.",
        flag="leader-elect-resource-lock",
    )
    resource_name: str = option(
        "kcm-controller-manager",
        "The name of the Lease object. With --kubeconfig the default is kube-controller-manager "
        "if --controllers has '*', and else a name of this set of controllers.",
        flag="leader-elect-resource-name",
        min_length=1,
    )
    resource_namespace: str = option(
        "kube-system",
        "The namespace of the Lease object.",
        flag="leader-elect-resource-namespace",
        min_length=1,
    )

    @model_validator(mode="after")
    def _check_periods(self) -> Self:
        if self.leader_elect:
            if self.resource_lock != "leases":
                raise ValueError('resourceLock value must be "leases"')
            self.election("check")
        return self

    def election(self, identity: str) -> LeaderElectionConfig:
        """Returns the elector's configuration. Raises ConfigurationError for periods that do not
        fit.
        """
        return LeaderElectionConfig(
            name=self.resource_name,
            namespace=self.resource_namespace,
            identity=identity,
            lease_duration=self.lease_duration.total_seconds(),
            renew_deadline=self.renew_deadline.total_seconds(),
            retry_period=self.retry_period.total_seconds(),
        )


class ServingOptions(Group):
    """The address of the health, metrics and debug pages, and who may read them."""

    bind_address: str = option(
        "127.0.0.1",
        "The IP address on which to serve health, metrics and debug pages. Plain HTTP on a "
        "loopback address; any other needs TLS files and a token file. (Upstream: 0.0.0.0, "
        "always TLS.)",
    )
    secure_port: int = option(
        10257,
        "The port on which to serve health, metrics and debug pages. 0 serves none.",
        ge=0,
        le=65535,
    )
    secure_port_wait: bool = option(
        False,
        "When the port is in use, wait for it in the background instead of exiting: several "
        "managers on one host expose the same metrics. (kcm's own; a worker's manager sets it.)",
    )
    tls_cert_file: str = option("", "File with the x509 certificate for HTTPS.")
    tls_private_key_file: str = option("", "File with the private key of --tls-cert-file.")
    bearer_token_file: str = option(
        "",
        "File with the token that requests must carry (Authorization: Bearer), except those to "
        "/healthz, /livez and /readyz. (kcm's own.)",
    )

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the address."""
        if self.bind_address == "localhost":
            return True
        return ipaddress.ip_address(self.bind_address).is_loopback

    @model_validator(mode="after")
    def _check_access(self) -> Self:
        try:
            loopback = self.loopback
        except ValueError:
            raise ValueError(f"bind address {self.bind_address!r} is not an IP address") from None
        if bool(self.tls_cert_file) != bool(self.tls_private_key_file):
            raise ValueError("--tls-cert-file and --tls-private-key-file belong together")
        if (
            self.secure_port
            and not loopback
            and not (self.tls_cert_file and self.bearer_token_file)
        ):
            raise errors.ConfigurationError(
                f"--bind-address={self.bind_address} can be reached from other machines: that "
                "needs --tls-cert-file, --tls-private-key-file and --bearer-token-file (or bind "
                "to 127.0.0.1)"
            )
        return self


class CloudOptions(Group):
    """The cloud on which the cluster runs."""

    cloud_provider: str = option(
        "",
        "The provider for cloud services. Empty string for no provider. `sim` is kcm's own: a "
        "cloud whose instances are the simulated nodes (kcm cloud --help). Others are entry points "
        "of the group kcm.cloud_providers. Workers need it as well.",
    )
    cloud_config: str = option(
        "",
        "The path to the cloud provider configuration file. Empty string for no configuration "
        "file. What it says is up to the provider; sim has none.",
    )
    cluster_name: str = option("kubernetes", "The instance prefix for the cluster.", min_length=1)
