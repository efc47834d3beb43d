"""Tests slices while pods, ports, limits and slices change at random: whatever slices there were
before, one sync makes them right, and the next sync writes nothing.
"""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from kcm.api.core_v1 import ContainerPort, Pod, Service, ServicePort
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.endpoints.endpointslice import EndpointSliceController, EndpointSliceOptions
from kcm.testing.builders import container, service
from kcm.testing.world import World
from tests.unit.controllers.endpoints.test_endpointslice import backend, slices

LIMITS = [1, 2, 3, 5]
PORTS = [
    ServicePort(name="a", port=80, target_port="web"),
    ServicePort(name="b", port=81),
    ServicePort(name="c", port=82, target_port="web"),
]


class Cluster:
    """A service and its pods, with random changes as users and the garbage collector make them."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.world = World(service())
        self.most = rng.choice(LIMITS)

    @property
    def service(self) -> Service:
        (obj,) = self.world.of(Service)
        assert isinstance(obj, Service)
        return obj

    @property
    def pods(self) -> list[Pod]:
        return [pod for pod in self.world.of(Pod) if isinstance(pod, Pod)]

    def put(self, obj: KubeObject) -> None:
        self.world.put(obj)

    # --- what happens

    def a_pod_comes_or_changes(self) -> None:
        number, port = self.rng.randrange(12), self.rng.choice([80, 81, 82])
        ports = [ContainerPort(name="web", container_port=port, protocol="TCP")]
        ready = self.rng.random() < 0.7
        self.put(backend(number, ready=ready, containers=[container(ports=ports)]))

    def a_pod_goes(self) -> None:
        for pod in self.rng.sample(self.pods, min(1, len(self.pods))):
            self.world.remove(self.world.objects["pods", pod.key])

    def ports_change(self) -> None:
        ports = self.rng.sample(PORTS, self.rng.randint(1, len(PORTS)))
        self.put(self.service.with_spec(self.service.spec.replace(ports=ports)))

    def the_limit_changes(self) -> None:
        self.most = self.rng.choice(LIMITS)

    def somebody_meddles(self) -> None:
        endpoint_slice = self.rng.choice(slices(self.world))
        if self.rng.random() < 0.5:
            self.put(endpoint_slice.replace(endpoints=endpoint_slice.endpoints[1:]))
        else:
            self.put(endpoint_slice.with_metadata(labels={**endpoint_slice.labels, "mine": "now"}))

    def the_service_is_made_anew(self) -> None:
        self.put(service().with_metadata(uid=f"uid-{self.rng.random()}"))

    # --- what becomes of it

    def sync(self) -> int:
        """Syncs once, and returns the number of writes."""
        options = EndpointSliceOptions(max_endpoints_per_slice=self.most)
        plan = EndpointSliceController(options).reconcile("default/web", self.world.view())
        self.world.carry_out(plan)
        assert plan.error is None
        assert self.world.failures == []
        return len(plan.writes)

    def list_published_ports(self) -> dict[str, list[tuple[str, int | None]]]:
        """Returns the published ports of each pod by its name; every slice must belong to this
        service.
        """
        ports_by_pod: dict[str, list[tuple[str, int | None]]] = {}
        for one in slices(self.world):
            (owner,) = one.metadata.owner_references or []
            assert owner.uid == self.service.uid
            for endpoint in one.endpoints:
                assert endpoint.target_ref is not None
                name = endpoint.target_ref.name or ""
                assert name not in ports_by_pod
                ports_by_pod[name] = sorted((p.name or "", p.port) for p in one.ports or ())
        return ports_by_pod

    def list_expected_ports(self) -> dict[str, list[tuple[str, int | None]]]:
        ports = self.service.spec.ports or []
        return {pod.name: sorted(resolve_port(pod, port) for port in ports) for pod in self.pods}


def resolve_port(pod: Pod, port: ServicePort) -> tuple[str, int | None]:
    (named,) = pod.spec.containers[0].ports or []
    return port.name or "", named.container_port if port.target_port == "web" else port.port


CHANGES = [
    *[Cluster.a_pod_comes_or_changes] * 4,
    Cluster.a_pod_goes,
    Cluster.ports_change,
    Cluster.the_limit_changes,
    Cluster.somebody_meddles,
    Cluster.the_service_is_made_anew,
]


@settings(max_examples=40, deadline=None)
@given(st.integers(min_value=0, max_value=2**32))
def test_one_sync_publishes_every_pod_once_and_the_next_one_rests(seed: int) -> None:
    rng = random.Random(seed)
    cluster = Cluster(rng)
    cluster.sync()
    for _ in range(20):
        rng.choice(CHANGES)(cluster)
        cluster.sync()
        assert cluster.list_published_ports() == cluster.list_expected_ports()
        assert slices(cluster.world)
        assert cluster.sync() == 0
