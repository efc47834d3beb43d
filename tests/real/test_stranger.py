"""kcm as the controller manager of a stranger: its own API server behind a proxy, in short, with an
account for each controller.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import yaml

from kcm.redisio.embedded import EmbeddedServer
from tests.chaos.cluster import Cluster
from tests.integration.apiserver.serving import TOKEN, live
from tests.real.battery import CASES
from tests.real.client import Api
from tests.real.garbage import define_kind
from tests.real.runner import Running, run_cases
from tests.real.stranger import Stranger, stand_between
from tests.real.workloads import burst

pytestmark = pytest.mark.scenario

# Those whose controllers need neither files of the cluster nor half a minute of a busy machine.
SHORT = (
    "burst",
    "namespace",
    "replicaset",
    "statefulset",
    "job",
    "endpoints",
    "garbage_foreground",
    "garbage_custom",
)


@dataclass
class Ended:
    """How the cases ended, and what the stranger saw."""

    cases: Mapping[str, Running]
    stranger: Stranger


@pytest.fixture(scope="module")
def ended() -> Iterator[Ended]:
    folder = Path(tempfile.mkdtemp(prefix="kcm-stranger-"))
    server, cluster = EmbeddedServer(folder), Cluster(workers=1, pool="threads", concurrency=16)
    server.start()
    try:
        with (
            live(server.url, folder) as own,
            stand_between(own.url, TOKEN, folder / "apiserver.crt") as stranger,
        ):
            config = yaml.safe_load(own.kubeconfig.read_text())
            config["clusters"][0]["cluster"] = {"server": stranger.url}
            kubeconfig = folder / "stranger.kubeconfig"
            kubeconfig.write_text(yaml.safe_dump(config))
            define_kind(Api(own.client))  # so that kcm does not learn of it after half a minute
            cluster.environment |= {
                "KCM_KUBECONFIG": str(kubeconfig),
                "KCM_CONTROLLERS": "*",
                "KCM_USE_SERVICE_ACCOUNT_CREDENTIALS": "true",
            }
            cluster.start()
            cases = {name: CASES[name] for name in SHORT} | {"burst": partial(burst, size=40)}
            yield Ended(run_cases(Api(own.client), cases, within=90), stranger)
    finally:
        cluster.stop()
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("case", SHORT)
def test_a_stranger(case: str, ended: Ended) -> None:
    assert not ended.cases[case].fault


def test_the_stranger_showed_all_its_faults(ended: Ended) -> None:
    assert ended.stranger.faults.keys() == {"away", "busy", "late", "forgetful"}


def test_no_write_takes_away_what_only_the_stranger_knows(ended: Ended) -> None:
    assert ended.stranger.lost == []
