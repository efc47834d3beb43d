"""Several schedulers race for the same nodes, people bind by hand, workers die: no node ever
takes more than it has, and what fits is placed."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Iterator

import psutil
import pytest

from kcm.api.core_v1 import Container, Pod, ResourceRequirements
from kcm.apimachinery.quantity import Quantity
from kcm.store.admission import namespaces
from kcm.store.options import DeleteOptions, Subresource
from kcm.store.strategies.pod_binding import bind_to_node
from kcm.testing.waiting import until
from tests.chaos.cluster import Cluster
from tests.chaos.world import PODS
from tests.new_objects import node, pod

SCHEDULERS = ("default-scheduler", "one", "two", "three")
NODES, ROOM = 12, 10  # and each pod takes one cpu
ONE_CPU = [
    Container(
        name="c", image="nginx:1", resources=ResourceRequirements(requests={"cpu": Quantity(1)})
    )
]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(workers=2, beats=1)
    cluster.environment["KCM_SCHEDULER_NAMES"] = ",".join(SCHEDULERS)
    try:
        cluster.start()
        namespaces.ensure(cluster.store)
        for number in range(NODES):
            cluster.store.create(node(f"n{number}", cpu=str(ROOM)))
        yield cluster
    finally:
        cluster.stop()


def pods(cluster: Cluster) -> list[Pod]:
    return [item for item in cluster.store.list(PODS).items if isinstance(item, Pod)]


def count_pods_by_node(cluster: Cluster) -> Counter[str]:
    return Counter(pod.spec.node_name for pod in pods(cluster) if pod.spec.node_name)


def bind_by_hand(cluster: Cluster, rng: random.Random) -> None:
    """As somebody with a view of the moment: to a node that has room just now, guarded by
    nothing but the pod's version. One step of many, to disturb."""
    used = count_pods_by_node(cluster)
    waiting = [pod for pod in pods(cluster) if not pod.spec.node_name]
    open_nodes = [f"n{n}" for n in range(NODES) if used[f"n{n}"] < ROOM // 2]
    if not waiting or not open_nodes:
        return
    chosen, where = rng.choice(waiting), rng.choice(open_nodes)
    created = chosen.metadata.creation_timestamp
    assert created is not None
    item = cluster.store.build_update(
        bind_to_node(chosen, where, created), chosen, subresource=Subresource.BINDING
    )
    if item is not None:
        cluster.store.write([item])


def kill_one(cluster: Cluster, rng: random.Random) -> None:
    """A pool's process, in the middle of what it does."""
    children = cluster.children()
    if children:
        try:
            rng.choice(children).send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            return


def test_no_node_is_ever_over_its_capacity(cluster: Cluster) -> None:
    rng = random.Random(4)
    wanted = NODES * ROOM
    for number in range(wanted + 40):  # more than there is room for
        scheduler = SCHEDULERS[number % len(SCHEDULERS)]
        cluster.store.create(pod(f"p{number}", scheduler_name=scheduler, containers=ONE_CPU))
        if number % 10 == 5:
            bind_by_hand(cluster, rng)
        if number % 40 == 20:
            kill_one(cluster, rng)
        if number % 7 == 0:
            assert max(count_pods_by_node(cluster).values(), default=0) <= ROOM

    def full() -> bool:
        cluster.start()
        used = count_pods_by_node(cluster)
        assert max(used.values(), default=0) <= ROOM
        return sum(used.values()) == wanted

    until(full, "a pod on every free place")
    give_some_back(cluster, rng)
    until(full, "the places taken again")


def give_some_back(cluster: Cluster, rng: random.Random) -> None:
    """Pods go, and others that have waited take their places."""
    placed = [pod for pod in pods(cluster) if pod.spec.node_name]
    for victim in rng.sample(placed, 30):
        cluster.store.delete(PODS, victim.key, DeleteOptions(grace_period_seconds=0))


@pytest.mark.chaos
def test_a_thousand_pods_find_their_places_on_a_hundred_nodes(cluster: Cluster) -> None:
    for number in range(NODES, 100):
        cluster.store.create(node(f"n{number}", cpu=str(ROOM)))
    items = [cluster.store.build_create(pod(f"p{n}", containers=ONE_CPU)) for n in range(1000)]
    assert all(result.ok for result in cluster.store.write(items))
    until(lambda: sum(count_pods_by_node(cluster).values()) == 1000, "a place for every pod")
    assert set(count_pods_by_node(cluster).values()) == {ROOM}
