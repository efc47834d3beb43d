"""One kcm for the charts of a module, and helm for it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.charts.helm import VERSIONS, Helm, find
from tests.integration.apiserver import kubectl as kubectls
from tests.integration.apiserver.kubectl import Kubectl
from tests.scenarios.cluster import Cluster
from tests.scenarios.plane import running_in_process

ABSENT = "{} is not here: `python tools/fetch_clients.py DIR` gets it; KCM_CLIENTS_DIR names DIR"
_NUMBERS = itertools.count()


def skip_without_helm() -> None:
    """Skips the test where there is no helm at all, before anything starts."""
    if not any(find(f"helm.{version}") for version in VERSIONS):
        pytest.skip(ABSENT.format("helm.3"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Yields a control plane with three simulated nodes for each module, in the test's process.

    Tests use names of their own.
    """
    skip_without_helm()
    with running_in_process() as cluster:
        yield cluster


# Without a mark, a test runs with helm 3 in the suite, and with helm 4 among the long ones.
SUITE, LONG = VERSIONS


@pytest.fixture(
    params=[SUITE, pytest.param(LONG, marks=pytest.mark.long)], ids=lambda one: f"helm{one}"
)
def helm(request: pytest.FixtureRequest, cluster: Cluster, tmp_path: Path) -> Helm:
    """Returns helm 3 or 4, for a namespace of its own, which does not exist yet."""
    binary = find(f"helm.{request.param}")
    if binary is None:
        pytest.skip(ABSENT.format(f"helm.{request.param}"))
    namespace = f"charts-{next(_NUMBERS)}"
    return Helm(request.param, binary, cluster.kubeconfig, namespace, tmp_path)


@pytest.fixture
def kubectl(helm: Helm) -> Kubectl:
    """Returns the newest kubectl, in the namespace of helm."""
    found = kubectls.find(kubectls.VERSIONS[-1])
    if found is None:
        pytest.skip("kubectl.1.33 is not here: see KCM_KUBECTL_DIR")
    return Kubectl(found, helm.kubeconfig, helm.namespace, helm.folder)
