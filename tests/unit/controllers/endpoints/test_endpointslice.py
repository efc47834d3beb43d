"""Tests which endpoints the slices of a service have, and how these are distributed over slices."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kcm.api.core_v1 import ContainerPort, Pod, PodCondition, PodIP, Service, ServicePort
from kcm.api.discovery_v1 import Endpoint, EndpointSlice
from kcm.controllers.endpoints.endpointslice.controller import (
    CHANGES,
    SYNCS,
    EndpointSliceController,
    EndpointSliceOptions,
    service_of_slice,
)
from kcm.controllers.endpoints.endpointslice.packing import OURS
from kcm.helpers.pods import MANAGED_BY, SERVICE_NAME, TRIGGER_TIME, services_of_pod
from kcm.reconcile.contract import Change
from kcm.testing.builders import container, node, pod, service
from kcm.testing.views import NOW, FakeView
from kcm.testing.world import World

READY = PodCondition(type="Ready", status="True", last_transition_time=NOW)


def backend(number: int, *, ready: bool = True, **more: Any) -> Pod:
    status = {
        "phase": "Running",
        "pod_ip": f"10.0.{number // 250}.{number % 250 + 1}",
        "conditions": [READY] if ready else [],
    }
    more.setdefault("labels", {"app": "web"})
    return pod(f"web-{number:04}", status=status | more.pop("status", {}), **more)


def sync(world: World, most: int = 100) -> list[EndpointSlice]:
    controller = EndpointSliceController(EndpointSliceOptions(max_endpoints_per_slice=most))
    world.carry_out(controller.reconcile("default/web", world.view()))
    return slices(world)


def slices(world: World) -> list[EndpointSlice]:
    endpoint_slices = [obj for obj in world.of(EndpointSlice) if isinstance(obj, EndpointSlice)]
    return sorted(endpoint_slices, key=lambda one: one.name)


def addresses(endpoint_slice: EndpointSlice) -> list[str]:
    return [endpoint.addresses[0] for endpoint in endpoint_slice.endpoints]


def sync_one(world: World) -> Endpoint:
    (endpoint_slice,) = sync(world)
    (endpoint,) = endpoint_slice.endpoints
    return endpoint


def test_a_ready_pod_is_an_endpoint_with_all_that_is_known_of_it() -> None:
    zone = node("n1", labels={"topology.kubernetes.io/zone": "z1"})
    world = World(service(), backend(1, node="n1"), zone)
    (endpoint_slice,) = sync(world)
    (endpoint,) = endpoint_slice.endpoints
    assert endpoint_slice.address_type == "IPv4"
    assert endpoint_slice.labels[SERVICE_NAME] == "web"
    assert endpoint_slice.labels[MANAGED_BY] == "endpointslice-controller.k8s.io"
    assert [(p.name, p.protocol, p.port) for p in endpoint_slice.ports or ()] == [("", "TCP", 80)]
    assert (endpoint.node_name, endpoint.zone) == ("n1", "z1")
    assert endpoint.target_ref is not None
    assert endpoint.target_ref.name == "web-0001"
    assert endpoint_slice.annotations[TRIGGER_TIME].endswith("Z")


@pytest.mark.parametrize(
    ("more", "spec", "expected"),
    [
        pytest.param({}, {}, (True, True, False), id="ready"),
        pytest.param({"ready": False}, {}, (False, False, False), id="not ready"),
        pytest.param({"deleting": NOW}, {}, (False, True, True), id="terminating, still serving"),
        pytest.param(
            {"ready": False},
            {"publish_not_ready_addresses": True},
            (True, False, False),
            id="published all the same",
        ),
    ],
)
def test_conditions(more: Any, spec: Any, expected: tuple[bool, bool, bool]) -> None:
    endpoint_conditions = sync_one(World(service(**spec), backend(1, **more))).conditions
    assert (
        endpoint_conditions.ready,
        endpoint_conditions.serving,
        endpoint_conditions.terminating,
    ) == expected


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(backend(1, labels={"app": "other"}), id="another app"),
        pytest.param(backend(1, status={"pod_ip": None}), id="no address yet"),
        pytest.param(backend(1, status={"phase": "Succeeded"}), id="ended"),
        pytest.param(backend(1, namespace="kube-system"), id="another namespace"),
    ],
)
def test_what_is_no_endpoint_leaves_an_empty_slice_that_stays(other: Pod) -> None:
    world = World(service(), other)
    (first,) = sync(world)
    assert first.endpoints == []
    (second,) = sync(world)
    assert first is second


@pytest.mark.parametrize(
    "new_service",
    [
        pytest.param(service(selector={}), id="without a selector"),
        pytest.param(service(type="ExternalName", external_name="a.example.com"), id="external"),
    ],
)
def test_services_that_somebody_else_fills_are_left_alone(new_service: Service) -> None:
    assert sync(World(new_service, backend(1))) == []


def test_named_ports_are_found_in_each_pod_and_pods_with_other_ports_have_slices_of_their_own() -> (
    None
):
    port = ServicePort(name="http", port=80, target_port="web")
    listening = [
        backend(n, containers=[container(ports=[ContainerPort(name="web", container_port=number)])])
        for n, number in ((1, 8080), (2, 8080), (3, 9090))
    ]
    endpoint_slices = sync(World(service(ports=[port]), *listening))
    by_port = {(one.ports or [])[0].port: len(one.endpoints) for one in endpoint_slices}
    assert by_port == {8080: 2, 9090: 1}


def build_dual_stack_pod(number: int) -> Pod:
    ips = [PodIP(ip=f"10.0.0.{number}"), PodIP(ip=f"2001:db8::{number}")]
    return backend(number, status={"pod_ip": ips[0].ip, "pod_ips": ips})


def test_a_service_of_both_families_has_slices_of_both() -> None:
    dual = service(ip_families=["IPv4", "IPv6"], ip_family_policy="RequireDualStack")
    world = World(dual, build_dual_stack_pod(1), build_dual_stack_pod(2))
    addresses_by_type = {one.address_type: addresses(one) for one in sync(world)}
    assert addresses_by_type == {
        "IPv4": ["10.0.0.1", "10.0.0.2"],
        "IPv6": ["2001:db8::1", "2001:db8::2"],
    }
    world.put(service(ip_families=["IPv6"]))
    assert [one.address_type for one in sync(world)] == ["IPv6"]


def test_a_slice_takes_a_hundred_endpoints_unless_told_otherwise() -> None:
    assert EndpointSliceOptions().max_endpoints_per_slice == 100
    world = World(service(), *(backend(n) for n in range(101)))
    assert sorted(len(one.endpoints) for one in sync(world)) == [1, 100]


def test_a_slice_that_changes_tells_when_that_was_asked_for_and_counts_its_generations() -> None:
    world = World(service(), backend(1))
    (before,) = sync(world)
    later = PodCondition(type="Ready", status="True", last_transition_time=NOW + timedelta(hours=1))
    world.put(backend(2, status={"conditions": [later]}))
    (after,) = sync(world)
    assert before.annotations[TRIGGER_TIME] == "2024-01-01T01:00:00Z"
    assert after.annotations[TRIGGER_TIME] == "2024-01-01T02:00:00Z"
    assert (before.metadata.generation, after.metadata.generation) == (1, 2)


def test_slices_take_so_many_endpoints_and_no_more() -> None:
    world = World(service(), *(backend(n) for n in range(250)))
    assert sorted(len(obj.endpoints) for obj in sync(world)) == [50, 100, 100]


def test_a_new_endpoint_goes_where_there_is_room_and_nothing_else_is_touched() -> None:
    world = World(service(), *(backend(n) for n in range(250)))
    before = {obj.name: obj for obj in sync(world)}
    new = backend(250)
    world.put(new)
    after = {obj.name: obj for obj in sync(world)}
    changed = [name for name in after if after[name] is not before.get(name)]
    assert [len(after[name].endpoints) for name in changed] == [51]


def test_a_replaced_pod_takes_the_place_of_the_old_one() -> None:
    world = World(service(), *(backend(n) for n in range(4)))
    before = {obj.name for obj in sync(world, most=2)}
    world.remove(world.objects["pods", "default/web-0000"])
    new = backend(9)
    world.put(new)
    after = sync(world, most=2)
    assert {obj.name for obj in after} == before
    assert sorted(len(obj.endpoints) for obj in after) == [2, 2]


def test_slices_that_are_empty_go_but_the_last() -> None:
    world = World(service(), *(backend(n) for n in range(4)))
    assert len(sync(world, most=2)) == 2
    for number in range(4):
        world.remove(world.objects["pods", f"default/web-{number:04}"])
    (left,) = sync(world, most=2)
    assert left.endpoints == []


def test_what_somebody_changed_is_mended() -> None:
    world = World(service(), backend(1))
    (endpoint_slice,) = sync(world)
    meddled = endpoint_slice.replace(endpoints=[Endpoint(addresses=["9.9.9.9"])])
    world.put(meddled)
    (mended,) = sync(world)
    assert addresses(mended) == ["10.0.0.2"]


def test_a_slice_of_ours_wakes_its_service_and_others_do_not() -> None:
    world = World(service(), backend(1))
    (endpoint_slice,) = sync(world)
    assert list(service_of_slice(Change(endpoint_slice, None), FakeView())) == ["default/web"]
    foreign = endpoint_slice.with_metadata(labels={SERVICE_NAME: "web", MANAGED_BY: "me"})
    assert list(service_of_slice(Change(foreign, None), FakeView())) == []


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({MANAGED_BY: "me", SERVICE_NAME: "web"}, {"default/web"}),  # given away
        ({MANAGED_BY: OURS, SERVICE_NAME: "api"}, {"default/web", "default/api"}),
        ({MANAGED_BY: OURS}, {"default/web"}),
    ],
)
def test_a_slice_that_somebody_relabels_wakes_the_service_that_had_it(
    labels: dict[str, str], expected: set[str]
) -> None:
    """Upstream's TestOnEndpointSliceUpdate of pkg/controller/endpointslice."""
    world = World(service(), backend(1))
    (endpoint_slice,) = sync(world)
    changed = endpoint_slice.with_metadata(labels=labels)
    for change in (Change(endpoint_slice, changed), Change(changed, endpoint_slice)):
        assert set(service_of_slice(change, FakeView())) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(Change(None, backend(1)), ["default/web"], id="added"),
        pytest.param(Change(backend(1), None), ["default/web"], id="gone"),
        pytest.param(Change(backend(1, ready=False), backend(1)), ["default/web"], id="ready"),
        pytest.param(Change(backend(1), backend(1)), [], id="nothing that shows"),
        pytest.param(
            Change(backend(1), backend(1, labels={"app": "x"})), ["default/web"], id="relabelled"
        ),
        pytest.param(Change(None, backend(1, labels={"app": "x"})), [], id="another app"),
        pytest.param(
            Change(
                backend(1, status={"pod_ip": None}), backend(1, status={"pod_ip": None}, node="n")
            ),
            [],
            id="bound, without an address yet",
        ),
        pytest.param(
            Change(backend(1, status={"pod_ip": None}, node="n"), backend(1, node="n")),
            ["default/web"],
            id="got an address",
        ),
    ],
)
def test_a_pod_wakes_the_services_that_choose_it(change: Change, expected: list[str]) -> None:
    view = FakeView(service(), service("none", selector={}))
    assert list(services_of_pod(change, view)) == expected


def test_syncs_and_the_slices_they_write_are_counted() -> None:
    world = World(service(), backend(1))
    plan = EndpointSliceController().reconcile("default/web", world.view())
    outcome = world.carry_out(plan)
    assert plan.counts_after(outcome) == {**CHANGES.count("create"), **SYNCS.count("success")}
