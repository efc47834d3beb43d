"""What was measured reads the same over REST as in Redis."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from kcm.api.core_v1 import Pod
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.quantity import Quantity
from kcm.store.remote.kubeconfig import load
from kcm.store.remote.metrics import RemoteMetrics
from kcm.store.remote.rest import RestClient
from kcm.store.resource_metrics.answers import StoredMetrics
from kcm.store.resource_metrics.usage import NodeReport, PodUsage, UsageBoard
from tests.integration.apiserver.serving import Live

QUEUE_B = Selector.parse("queue=b")


@pytest.fixture
def remote(api: Live) -> Iterator[RemoteMetrics]:
    client = RestClient(load(api.kubeconfig), "tester")
    yield RemoteMetrics(client)
    client.close()


@pytest.fixture
def local(api: Live) -> StoredMetrics:
    return StoredMetrics(UsageBoard(api.store.io))


@pytest.fixture
def pods(api: Live) -> list[Pod]:
    """Two pods with figures, and one without."""
    created = []
    for name in ("one", "two", "three"):
        spec = {"nodeName": "m1", "containers": [{"name": "app", "image": "i:1"}]}
        api.create("/api/v1/namespaces/default/pods", {"metadata": {"name": name}, "spec": spec})
        pod = api.store.get(BUILT_IN.lookup("pods"), f"default/{name}")
        assert isinstance(pod, Pod)
        created.append(pod)
    return created


def test_figures_are_the_same_over_rest(
    api: Live, local: StoredMetrics, remote: RemoteMetrics, pods: list[Pod]
) -> None:
    board = UsageBoard(api.store.io)
    usage = {"cpu": Quantity("150m"), "memory": Quantity("64Mi")}
    hits = {"hits": Quantity("12500m")}
    reported = {f"default/{name}": PodUsage({"app": usage}, hits) for name in ("one", "two")}
    board.report([NodeReport("m1", int(time.time()), 15.0, usage, reported)], lasts=600)
    board.publish("services", "hits", "default/web", Quantity(3))
    board.publish("nodes", "heat", "m1", Quantity(40))
    board.publish("namespaces", "load", "default", Quantity(7))
    board.publish("external", "length", "default{queue=a}", Quantity(1))
    board.publish("external", "length", "default{queue=b}", Quantity(2))

    seen = remote.pods(pods)
    assert set(seen) == {"default/one", "default/two"}
    for key, measured in local.pods(pods).items():
        assert (seen[key].usage, seen[key].containers) == (measured.usage, measured.containers)
        assert (seen[key].moment, seen[key].window) == (measured.moment, measured.window)
    values = remote.of_pods("hits", pods)
    assert values == local.of_pods("hits", pods)
    for resource, metric, key in (
        ("services", "hits", "default/web"),
        ("nodes", "heat", "m1"),
        ("namespaces", "load", "default"),
        ("services", "misses", "default/web"),
    ):
        there = remote.of_objects(resource, metric, [key])
        here = local.of_objects(resource, metric, [key])
        assert {k: v.value for k, v in there.items()} == {k: v.value for k, v in here.items()}
    for selector in (Selector(), QUEUE_B):
        there_too = remote.external("default", "length", selector)
        expected = local.external("default", "length", selector)
        assert [(dict(labels), v.value) for labels, v in there_too] == [
            (dict(labels), v.value) for labels, v in expected
        ]
