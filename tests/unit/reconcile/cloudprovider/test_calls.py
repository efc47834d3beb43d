"""Tests the calls of plans: what they ask of a provider, and how errors become answers."""

from __future__ import annotations

import threading

from kcm.api.core_v1 import Node
from kcm.reconcile.cloudprovider.caller import CloudCaller
from kcm.reconcile.cloudprovider.calls import (
    EnsureLoadBalancer,
    GetInstanceMetadata,
    InstanceExists,
    ListRoutes,
)
from kcm.reconcile.cloudprovider.interface import (
    InstanceMetadata,
    InstanceNotFound,
    NotSupported,
    Zone,
)
from kcm.testing.builders import node, service


class Hosted:
    """A user's cloud, which has instances and zones only."""

    name = "hosted"
    load_balancers = routes = None

    def __init__(self) -> None:
        self.together = threading.Barrier(3, timeout=10)

    @property
    def instances_v2(self) -> Hosted:
        return self

    @property
    def zones(self) -> Hosted:
        return self

    def instance_exists(self, node: Node) -> bool:
        self.together.wait()
        if node.name == "broken":
            raise OSError("timed out")
        return node.name == "here"

    def instance_shutdown(self, node: Node) -> bool:
        return False

    def instance_metadata(self, node: Node) -> InstanceMetadata:
        return InstanceMetadata(f"hosted://{node.name}", "large", region="north")

    def get_zone_by_provider_id(self, provider_id: str) -> Zone:
        if provider_id.endswith("new"):
            raise InstanceNotFound
        return Zone("z1", "south")

    def get_zone_by_node_name(self, name: str) -> Zone:
        return Zone("z2", "south")


def test_calls_are_made_together_and_errors_are_answers() -> None:
    calls = [InstanceExists(node(name)) for name in ("here", "broken", "gone")]
    here, broken, gone = CloudCaller(Hosted(), "kubernetes").make(calls)
    assert (here.value, here.error) == (True, None)
    assert (gone.value, gone.error) == (False, None)
    assert str(broken.error) == "timed out"
    assert [answer.call for answer in (here, broken, gone)] == calls


def test_zones_are_asked_for_what_instances_leave_empty() -> None:
    caller = CloudCaller(Hosted(), "kubernetes")
    (known,) = caller.make([GetInstanceMetadata(node("old"))])
    assert (known.value.zone, known.value.region) == ("z1", "north")
    (new,) = caller.make([GetInstanceMetadata(node("new"))])
    assert new.value.zone == "z2"


def test_an_interface_that_is_missing_is_an_error() -> None:
    caller = CloudCaller(Hosted(), "kubernetes")
    for call, what in (
        (EnsureLoadBalancer(service("web"), ()), "external load balancers"),
        (ListRoutes(), "routes"),
    ):
        (answer,) = caller.make([call])
        assert isinstance(answer.error, NotSupported)
        assert str(answer.error) == f"the cloud provider hosted does not support {what}"
    assert caller.make([]) == []
