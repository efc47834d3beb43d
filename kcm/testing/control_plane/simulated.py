"""The simulated nodes of a control plane."""

from __future__ import annotations

from kcm.component.options import ManagerOptions
from kcm.controllers.nodelifecycle.controller import NodeLifecycleController, NodeLifecycleOptions
from kcm.simulation.options import SimulatorOptions

_LEASE = 40  # seconds, as a kubelet's
_SHARE = 0.8  # of the grace period after which a silent node is unreachable


def simulator_options(count: int, options: ManagerOptions) -> SimulatorOptions:
    """Returns the options of nodes that renew their leases often enough for the manager's."""
    lifecycle = options.of(NodeLifecycleController)
    assert isinstance(lifecycle, NodeLifecycleOptions)  # its `options_type`
    grace = lifecycle.node_monitor_grace_period.total_seconds()
    return SimulatorOptions(
        count=count,
        external_cloud=bool(options.cloud.cloud_provider),
        lease_duration=min(_LEASE, max(1, int(grace * _SHARE))),
        monitor_grace_period=grace,
    )
