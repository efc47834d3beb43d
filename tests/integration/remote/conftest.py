"""A store of a remote cluster, over a live API server."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kcm.redisio import Fence
from kcm.redisio.embedded import EmbeddedServer
from kcm.store.remote.kubeconfig import load
from kcm.store.remote.rest import RestClient
from kcm.store.remote.store import RemoteStore
from kcm.store.remote.work import WorkState
from tests.integration.apiserver.serving import Live, live

HELD = Fence("queue", "default/web", "1")


@pytest.fixture(scope="module")
def api(redis_server: EmbeddedServer) -> Iterator[Live]:
    folder = Path(tempfile.mkdtemp(prefix="kcm-remote-"))
    with live(redis_server.url, folder) as running:
        yield running
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def remote(api: Live) -> Iterator[RemoteStore]:
    """Gives the same objects, over REST."""
    store = RemoteStore(
        RestClient(load(api.kubeconfig), "tester"), WorkState(lambda fence: fence == HELD)
    )
    yield store
    store.close()
