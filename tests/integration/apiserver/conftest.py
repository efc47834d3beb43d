"""A live API server, and kubectl for it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kcm.redisio.embedded import EmbeddedServer
from tests.integration.apiserver.kubectl import VERSIONS, Kubectl, find
from tests.integration.apiserver.serving import Live, live


@pytest.fixture(scope="module")
def api(redis_server: EmbeddedServer) -> Iterator[Live]:
    """Yields one live server for each test module. Tests use names of their own."""
    folder = Path(tempfile.mkdtemp(prefix="kcm-api-"))
    with live(redis_server.url, folder) as running:
        yield running
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=VERSIONS)
def kubectl(request: pytest.FixtureRequest, api: Live, tmp_path: Path) -> Kubectl:
    """Returns a supported kubectl, the oldest or the newest, in a namespace of its own."""
    binary = find(request.param)
    if binary is None:
        pytest.skip(
            f"kubectl.{request.param} is not here: put it on the PATH, or in a folder "
            "that KCM_KUBECTL_DIR names"
        )
    namespace = f"ns-{abs(hash(request.node.nodeid)) % 10**8}"
    api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    return Kubectl(binary, api.kubeconfig, namespace, tmp_path)
