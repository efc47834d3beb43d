"""kcm as the controller manager of a real cluster, with the rights that every cluster gives one."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from kcm.reconcile.cloudprovider.sim.records import Instance
from kcm.reconcile.cloudprovider.sim.state import SimState
from tests.chaos.cluster import Cluster
from tests.real.battery import CASES, SLOW
from tests.real.cluster_cases import cloud, legacy_tokens
from tests.real.runner import Case, Running, run_cases
from tests.real.server import missing_binaries, serve

pytestmark = pytest.mark.scenario

EVERY = (*CASES, *SLOW, legacy_tokens.__name__, cloud.__name__)
LEGACY_TOKENS = "legacyserviceaccounttokencleaner.legacytokens"  # a loop whose period is an hour
ALL = "*,bootstrap-signer-controller,token-cleaner-controller"


@pytest.fixture(scope="module")
def ended() -> Iterator[Mapping[str, Running]]:
    """Gives how all cases ended, which ran side by side."""
    if fault := missing_binaries():
        pytest.skip(fault)
    folder = Path(tempfile.mkdtemp(prefix="kcm-real-"))
    cluster = Cluster(workers=1, pool="threads", concurrency=16)
    try:
        with serve(folder) as server:
            cluster.environment |= {
                **server.build_environment(ALL),
                "KCM_ALLOCATE_NODE_CIDRS": "true",
                "KCM_CLUSTER_CIDR": "10.42.0.0/16",
                "KCM_CLOUD_PROVIDER": "sim",
                "KCM_LEGACY_SERVICE_ACCOUNT_TOKEN_CLEAN_UP_PERIOD": "1s",
            }
            cluster.start()
            yield run_cases(server.api, {**CASES, **SLOW, **_list_own(cluster)}, within=150)
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _list_own(cluster: Cluster) -> Mapping[str, Case]:
    """Returns the cases that need more of kcm than its controllers."""
    clouds = SimState(cluster.io)

    def delete_instance(node: str) -> None:
        clouds.put_instance(node, Instance(state="deleted"))

    return {
        legacy_tokens.__name__: legacy_tokens(partial(cluster.run_pass, LEGACY_TOKENS)),
        cloud.__name__: cloud(delete_instance),
    }


@pytest.mark.parametrize("case", EVERY)
def test_a_real_cluster(case: str, ended: Mapping[str, Running]) -> None:
    assert not ended[case].fault
