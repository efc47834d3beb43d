"""What a control plane consists of, and the options of its simulated nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kcm import errors
from kcm.apiserver.running import ServerOptions
from kcm.apiserver.serving import Address
from kcm.controllers.nodelifecycle.controller import NodeLifecycleController, NodeLifecycleOptions
from kcm.options.manager import ManagerOptions
from kcm.simulation.options import SimulatorOptions

_LEASE = 40  # seconds, as a kubelet's
# An API server as envtest starts it; pods need no service account, which no controller makes.
BARE: Mapping[str, Any] = {
    "disable_admission_plugins": "ServiceAccount",
    "service_cluster_ip_range": "10.0.0.0/24",
}
_SHARE = 0.8  # of the grace period after which a silent node is unreachable


def serve_anywhere(*, storage_class: bool = True) -> ServerOptions:
    """Returns the options of an API server on a free port of the loopback interface, with TLS and
    RBAC, and with the StorageClass `local` if `storage_class` says so.
    """
    return ServerOptions(
        address=Address(port=0),
        anonymous=False,
        tls=True,
        token_file=None,
        kubeconfig=None,
        cluster_authority=True,
        local_storage_class=storage_class,
        bootstrap_tokens=True,
    )


@dataclass(frozen=True)
class PlaneOptions:
    """What a control plane consists of; see `ControlPlane`."""

    controllers: Sequence[str] = ("*",)
    nodes: int = 1
    config: Mapping[str, Any] | None = None
    flags: Sequence[str] = ()
    seed: int | None = None
    api: ServerOptions = field(default_factory=serve_anywhere)
    settings: Mapping[str, Any] = field(default_factory=dict)  # further ones, by their names
    programs: bool = False  # whether simulated containers do what their commands say

    def __post_init__(self) -> None:
        """Raises ConfigurationError for what is no such thing."""
        for name in ("controllers", "flags"):
            if isinstance(getattr(self, name), str):
                raise errors.ConfigurationError(
                    f'{name} are several: write {name}=["{getattr(self, name)}"]'
                )
        if not isinstance(self.nodes, int) or self.nodes < 0:
            raise errors.ConfigurationError(f"nodes={self.nodes} is no number: use 0 or more")
        if not isinstance(self.seed, int | None):
            raise errors.ConfigurationError(f"seed={self.seed} is no integer")


def simulator_options(
    plane: PlaneOptions, options: ManagerOptions, signing_key_file: Path | None = None
) -> SimulatorOptions:
    """Returns the options of nodes that renew their leases often enough for the manager's."""
    lifecycle = options.of(NodeLifecycleController)
    assert isinstance(lifecycle, NodeLifecycleOptions)  # its `options_type`
    grace = lifecycle.node_monitor_grace_period.total_seconds()
    return SimulatorOptions(
        count=plane.nodes,
        programs=plane.programs,
        signing_key_file=signing_key_file,
        external_cloud=bool(options.cloud.cloud_provider),
        lease_duration=min(_LEASE, max(1, int(grace * _SHARE))),
        monitor_grace_period=grace,
    )
