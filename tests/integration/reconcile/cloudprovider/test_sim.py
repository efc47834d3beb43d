"""Tests the simulated cloud: addresses, instances, routes, scripts, and strangers' bytes in it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import Node, NodeAddress, Service
from kcm.api.simulated import SIMULATOR_LABEL
from kcm.reconcile.cloudprovider.interface import (
    CloudError,
    CloudProvider,
    InstanceNotFound,
    Route,
    default_load_balancer_name,
)
from kcm.reconcile.cloudprovider.sim.provider import SimCloud
from kcm.reconcile.cloudprovider.sim.records import Instance, Script
from kcm.reconcile.cloudprovider.sim.state import SimState
from kcm.redisio import RedisIO
from kcm.testing.builders import node, service
from kcm.testing.clock import FakeClock


def balanced(name: str = "web", **spec: Any) -> Service:
    return service(name, type="LoadBalancer", **spec)


def simulated(name: str = "node-1", zone: str = "a") -> Node:
    return node(name, labels={SIMULATOR_LABEL: "node", "topology.kubernetes.io/zone": zone})


def address_of(cloud: SimCloud, about: Service) -> str:
    status = cloud.ensure_load_balancer("kubernetes", about, [])
    (ingress,) = status.ingress or []
    assert ingress.ip_mode == "VIP"
    return ingress.ip or ""


def test_it_is_a_provider_with_all_interfaces_but_zones(cloud: SimCloud) -> None:
    provider: CloudProvider = cloud
    assert provider.name == "sim"
    interfaces: list[object] = [provider.load_balancers, provider.instances_v2, provider.routes]
    assert interfaces == [cloud, cloud, cloud]
    assert provider.zones is None


# --- load balancers


def test_a_load_balancer_keeps_its_address(cloud: SimCloud) -> None:
    assert cloud.get_load_balancer("kubernetes", balanced()) is None
    assert address_of(cloud, balanced()) == "198.18.0.1"
    assert address_of(cloud, balanced("other")) == "198.18.0.2"
    assert address_of(cloud, balanced()) == "198.18.0.1"
    status = cloud.get_load_balancer("kubernetes", balanced())
    assert status is not None
    assert [ingress.ip for ingress in status.ingress or ()] == ["198.18.0.1"]


def test_a_deleted_load_balancer_frees_its_address(cloud: SimCloud) -> None:
    address_of(cloud, balanced())
    cloud.ensure_load_balancer_deleted("kubernetes", balanced())
    cloud.ensure_load_balancer_deleted("kubernetes", balanced())
    assert cloud.get_load_balancer("kubernetes", balanced()) is None
    assert address_of(cloud, balanced("other")) == "198.18.0.1"


def test_addresses_are_unique_however_many_are_asked_for_at_a_time(cloud: SimCloud) -> None:
    with ThreadPoolExecutor(8) as pool:
        ips = list(pool.map(lambda n: address_of(cloud, balanced(f"web-{n}")), range(40)))
    assert len(set(ips)) == 40


def test_an_address_may_be_requested(cloud: SimCloud) -> None:
    assert address_of(cloud, balanced(load_balancer_ip="198.18.7.7")) == "198.18.7.7"
    with pytest.raises(CloudError, match=r"198\.18\.7\.7 is in use by "):
        address_of(cloud, balanced("other", load_balancer_ip="198.18.7.7"))
    with pytest.raises(CloudError, match=r"10\.0\.0\.1 is not in the pool 198\.18\.0\.0/15"):
        address_of(cloud, balanced("other", load_balancer_ip="10.0.0.1"))
    with pytest.raises(CloudError, match="is not in the pool"):
        address_of(cloud, balanced("other", load_balancer_ip="nonsense"))
    assert address_of(cloud, balanced()) == "198.18.7.7"


def test_a_pool_can_be_full(cloud: SimCloud, state: SimState) -> None:
    state.set_pool("192.0.2.0/30")
    assert {address_of(cloud, balanced("a")), address_of(cloud, balanced("b"))} == {
        "192.0.2.1",
        "192.0.2.2",
    }
    with pytest.raises(CloudError, match=r"the pool 192\.0\.2\.0/30 has no free address"):
        address_of(cloud, balanced("c"))
    with pytest.raises(errors.ConfigurationError, match="is not a range of addresses"):
        state.set_pool("192.0.2.1/24")


def test_a_load_balancer_knows_its_nodes_and_ports(cloud: SimCloud, state: SimState) -> None:
    about = balanced()
    cloud.ensure_load_balancer("kubernetes", about, [node("n2"), node("n1")])
    (stored,) = state.balancers().values()
    assert (stored.service, stored.nodes) == ("default/web", ("n1", "n2"))
    cloud.update_load_balancer("kubernetes", about, [node("n3")])
    assert state.balancers()[stored.name].nodes == ("n3",)
    with pytest.raises(CloudError, match="there is no load balancer"):
        cloud.update_load_balancer("kubernetes", balanced("gone"), [])


def test_the_default_name_is_one_that_clouds_accept() -> None:
    about = balanced().with_metadata(uid="12345678-1234-1234-1234-123456789012")
    assert default_load_balancer_name(about) == "a1234567812341234123412345678901"


# --- instances


def test_a_simulated_node_has_a_running_instance(cloud: SimCloud) -> None:
    about = simulated().with_status(
        simulated().status.replace(addresses=[NodeAddress(type="InternalIP", address="10.0.0.1")])
    )
    found = cloud.instance_metadata(about)
    assert (found.provider_id, found.instance_type, found.zone) == (
        "sim://node-1",
        "sim.standard",
        "a",
    )
    assert [address.address for address in found.node_addresses] == ["10.0.0.1"]
    assert cloud.instance_exists(about)
    assert not cloud.instance_shutdown(about)


def test_instances_are_shut_down_and_deleted(cloud: SimCloud, state: SimState) -> None:
    state.put_instance("node-1", Instance(state="shutdown", type="sim.large", zone="b"))
    assert cloud.instance_exists(simulated())
    assert cloud.instance_shutdown(simulated())
    found = cloud.instance_metadata(simulated())
    assert (found.instance_type, found.zone) == ("sim.large", "b")
    state.put_instance("node-1", Instance(state="deleted"))
    assert not cloud.instance_exists(simulated())
    assert not cloud.instance_shutdown(simulated())
    with pytest.raises(InstanceNotFound, match="instance not found"):
        cloud.instance_metadata(simulated())


def test_nodes_of_others_are_left_alone(cloud: SimCloud, state: SimState) -> None:
    """Such as the node of a kubelet on this machine, or one whose providerID is another cloud's."""
    foreign = simulated("gke-1")
    foreign = foreign.with_spec(foreign.spec.replace(provider_id="gce://project/zone/gke-1"))
    for name in ("real", "gke-1"):
        state.put_instance(name, Instance(state="deleted"))
    for other in (node("real"), foreign):
        assert cloud.instance_exists(other)
        assert not cloud.instance_shutdown(other)
        with pytest.raises(InstanceNotFound):
            cloud.instance_metadata(other)


# --- routes


def test_routes_belong_to_a_cluster(cloud: SimCloud) -> None:
    cloud.create_route("east", "uid1", Route(target_node="n1", destination_cidr="10.1.0.0/24"))
    assert cloud.list_routes("west") == []
    (route,) = cloud.list_routes("east")
    assert route == Route("east-uid1-10.1.0.0-24", "n1", "10.1.0.0/24")
    cloud.delete_route("east", route)
    assert cloud.list_routes("east") == []


# --- scripts


def test_a_script_makes_calls_slow_and_fail(
    cloud: SimCloud, state: SimState, clock: FakeClock
) -> None:
    state.add_script(
        Script(call="EnsureLoadBalancer", object="default/web", delay=3, error="no quota"), 2
    )
    for _ in range(2):
        with pytest.raises(CloudError, match="no quota"):
            address_of(cloud, balanced())
    assert clock.monotonic() == 6
    address_of(cloud, balanced())
    assert state.scripts() == {}
    assert [(made.call, made.seconds, made.error) for made in state.calls(10)] == [
        ("EnsureLoadBalancer", 3.0, "no quota"),
        ("EnsureLoadBalancer", 3.0, "no quota"),
        ("EnsureLoadBalancer", 0.0, ""),
    ]


def test_a_script_applies_to_its_calls_only(
    cloud: SimCloud, state: SimState, clock: FakeClock
) -> None:
    name = state.add_script(Script(object="default/web", delay=1), None)
    address_of(cloud, balanced("other"))
    assert clock.monotonic() == 0
    for _ in range(3):
        address_of(cloud, balanced())
    assert clock.monotonic() == 3
    assert state.scripts() == {name: (Script(object="default/web", delay=1), None)}
    state.clear_scripts()
    address_of(cloud, balanced())
    assert clock.monotonic() == 3


# --- strangers


@pytest.mark.parametrize("count", [b"\xff", b"many", b"--5", b"-9223372036854775808", b"9" * 30])
def test_a_script_whose_number_of_calls_is_none_is_over(
    cloud: SimCloud, state: SimState, io: RedisIO, count: bytes
) -> None:
    name = state.add_script(Script(error="no quota"), 2)
    io.execute("HSET", io.keys.cloud("sim", "left"), name, count)
    assert [left for _, left in state.scripts().values()] == [0]
    assert address_of(cloud, balanced())
    assert state.scripts() == {}


def test_bytes_that_are_no_records_are_left_out(
    cloud: SimCloud, state: SimState, io: RedisIO
) -> None:
    address_of(cloud, balanced())
    for part in ("instances", "balancers", "routes", "scripts", "left", "addresses"):
        for text in (b"\xff\xfe", b"[]", b'{"state": 7}', b"null"):
            io.execute("HSET", io.keys.cloud("sim", part), text, text)
    io.execute("HSET", io.keys.cloud("sim", "instances"), "node-1", "{")
    io.execute("HSET", io.keys.cloud("sim", "settings"), "pool", "everything")
    io.execute("LPUSH", io.keys.cloud("sim", "calls"), "what?")
    assert len(state.balancers()) == 1
    assert state.routes() == {}
    assert cloud.instance_exists(simulated())
    assert address_of(cloud, balanced("other")) == "198.18.0.2"
