"""The ReplicaSet controller over Redis, and over the REST API of a server elsewhere."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from kcm.api.apps_v1 import ReplicaSet
from kcm.redisio.embedded import EmbeddedServer
from kcm.store import Store
from kcm.testing.waiting import until
from tests.chaos.cluster import Cluster
from tests.chaos.world import PODS, SETS
from tests.integration.apiserver.serving import live
from tests.new_objects import replica_set
from tests.typed_objects import get_object

pytestmark = pytest.mark.scenario


Start = Callable[[], AbstractContextManager[tuple[Cluster, Store]]]


@contextmanager
def local() -> Iterator[tuple[Cluster, Store]]:
    """Workers on the Redis that has the objects."""
    cluster = Cluster(workers=2)
    try:
        cluster.start()
        yield cluster, cluster.store
    finally:
        cluster.stop()


@contextmanager
def remote() -> Iterator[tuple[Cluster, Store]]:
    """Workers whose own Redis has nothing but their queues."""
    folder = Path(tempfile.mkdtemp(prefix="kcm-remote-"))
    server = EmbeddedServer(folder)
    cluster = Cluster(workers=2)
    server.start()
    try:
        with live(server.url, folder) as api:
            cluster.environment["KCM_KUBECONFIG"] = str(api.kubeconfig)
            try:
                cluster.start()
                yield cluster, api.store
            finally:
                cluster.stop()
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("start", [pytest.param(local, marks=pytest.mark.long), remote])
def test_a_replica_set_heals_and_is_never_overshot(start: Start) -> None:
    with start() as (cluster, store):
        version = store.resource_version()
        store.create(replica_set("web", replicas=30))
        until(lambda: ready(store, 30), "30 pods")
        for pod in list(store.list(PODS).items)[:10]:
            store.delete(PODS, pod.key)
        until(lambda: ready(store, 30), "10 replacements")
        cluster.workers[0].send_signal(signal.SIGKILL)
        store.patch(SETS, "default/web", {"spec": {"replicas": 12}})
        until(lambda: ready(store, 12), "12 pods")
        cluster.start()
        assert most_at_a_time(store, version) == 30
        store.delete(SETS, "default/web")
        until(lambda: store.count(PODS) == 0, "the collection of the pods")


def ready(store: Store, count: int) -> bool:
    replicas = get_object(store, ReplicaSet, "default/web").status.replicas
    alive = [pod for pod in store.list(PODS).items if not pod.deleting]
    return replicas == len(alive) == count


def most_at_a_time(store: Store, version: int) -> int:
    """The most pods that ever existed at once since `version`."""
    most, alive = 0, set()
    for change in store.read_changes({PODS: version}, 0).entries:
        if change.type == "DELETED":
            alive.discard(change.key)
        else:
            alive.add(change.key)
        most = max(most, len(alive))
    return most
