from __future__ import annotations

import pytest

from kcm.options.commandline import parse_flags
from kcm.options.manager import ManagerOptions
from kcm.testing.control_plane.options import PlaneOptions, simulator_options


@pytest.mark.parametrize(
    ("flags", "lease"),
    [
        ([], 40),
        (["--node-monitor-grace-period=10m"], 40),
        (["--node-monitor-grace-period=10s"], 8),
        (["--node-monitor-grace-period=1s"], 1),
    ],
)
def test_leases_are_renewed_well_within_the_grace_period(flags: list[str], lease: int) -> None:
    given = simulator_options(
        PlaneOptions(nodes=3), ManagerOptions.load(parse_flags(flags), environ={})
    )
    assert (given.count, given.lease_duration, given.external_cloud) == (3, lease, False)
    assert given.renew_every * 2 <= given.monitor_grace_period


def test_nodes_wait_for_the_cloud_where_there_is_one() -> None:
    flags = parse_flags(["--cloud-provider=sim"])
    assert simulator_options(PlaneOptions(), ManagerOptions.load(flags, environ={})).external_cloud
