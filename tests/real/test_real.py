"""kcm as the controller manager of a real cluster, with the rights that every cluster gives one."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.chaos.cluster import Cluster
from tests.real.battery import CASES, SLOW
from tests.real.runner import Running, run_cases
from tests.real.server import missing_binaries, serve

pytestmark = pytest.mark.scenario

EVERY = {**CASES, **SLOW}
ALL = "*,bootstrap-signer-controller,token-cleaner-controller"


@pytest.fixture(scope="module")
def ended() -> Iterator[Mapping[str, Running]]:
    """Gives how all cases ended, which ran side by side."""
    if fault := missing_binaries():
        pytest.skip(fault)
    folder = Path(tempfile.mkdtemp(prefix="kcm-real-"))
    cluster = Cluster(workers=1)
    try:
        with serve(folder) as server:
            cluster.environment |= {
                **server.build_environment(ALL),
                "KCM_ALLOCATE_NODE_CIDRS": "true",
                "KCM_CLUSTER_CIDR": "10.42.0.0/16",
            }
            cluster.start()
            yield run_cases(server.api, EVERY, within=150)
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("case", EVERY)
def test_a_real_cluster(case: str, ended: Mapping[str, Running]) -> None:
    assert not ended[case].fault
