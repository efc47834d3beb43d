"""Tests the slices that mirror Endpoints. The cases follow upstream's
pkg/controller/endpointslicemirroring/{reconciler,endpointslicemirroring_controller}_test.go.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kcm.api.core_v1 import Endpoints, Service
from kcm.api.discovery_v1 import EndpointSlice
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.endpoints.endpointslicemirroring import (
    OURS,
    SKIP,
    EndpointSliceMirroringController,
    EndpointSliceMirroringOptions,
    endpoints_of_slice,
    find_mirrored_endpoints,
    service_without_selector,
)
from kcm.helpers.pods import LEADER_RECORD, MANAGED_BY, SERVICE_NAME, TRIGGER_TIME
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import Plan
from kcm.testing.builders import object_meta, service
from kcm.testing.views import NOW, FakeView
from kcm.testing.world import World
from tests.samples import sample

KEY = "default/web"
PORT = {"name": "http", "port": 80, "protocol": "TCP"}


def custom(**spec: Any) -> Service:
    return service("web", selector={}, **spec)


def endpoints(*subsets: dict[str, Any], labels: Any = None, annotations: Any = None) -> Endpoints:
    new_endpoints: Endpoints = sample("endpoints", subsets=list(subsets))
    meta = object_meta("Endpoints", "web", "default", labels=labels or {})
    return new_endpoints.replace(metadata=meta.replace(annotations=annotations))


def subset(*ips: str, not_ready: tuple[str, ...] = (), ports: Any = (PORT,)) -> dict[str, Any]:
    return {
        "addresses": [{"ip": ip} for ip in ips],
        "notReadyAddresses": [{"ip": ip} for ip in not_ready],
        "ports": list(ports),
    }


def sync(world: World, **options: Any) -> Plan:
    controller = EndpointSliceMirroringController(EndpointSliceMirroringOptions(**options))
    plan = controller.reconcile(KEY, world.view())
    world.carry_out(plan)
    return plan


def slices(world: World) -> list[EndpointSlice]:
    endpoint_slices = [obj for obj in world.of(EndpointSlice) if isinstance(obj, EndpointSlice)]
    return sorted(endpoint_slices, key=lambda one: (one.address_type, str(one.ports)))


def summarize(world: World) -> list[tuple[str, list[int | None], list[tuple[str, bool | None]]]]:
    return [
        (
            slice_.address_type,
            [port.port for port in slice_.ports or ()],
            sorted((e.addresses[0], e.conditions.ready) for e in slice_.endpoints),
        )
        for slice_ in slices(world)
    ]


def test_a_slice_says_what_the_endpoints_say() -> None:
    mine = endpoints(
        subset("10.0.0.1", not_ready=("10.0.0.2",)),
        labels={"app": "web"},
        annotations={
            "team": "a",
            TRIGGER_TIME: "2024-01-01T00:00:00Z",
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
        },
    )
    world = World(custom(), mine)
    sync(world)
    assert summarize(world) == [("IPv4", [80], [("10.0.0.1", True), ("10.0.0.2", False)])]
    (endpoint_slice,) = slices(world)
    assert dict(endpoint_slice.labels) == {"app": "web", SERVICE_NAME: "web", MANAGED_BY: OURS}
    assert dict(endpoint_slice.annotations) == {"team": "a"}
    (owner,) = endpoint_slice.metadata.owner_references or []
    assert (owner.kind, owner.name, owner.controller) == ("Endpoints", "web", True)
    assert endpoint_slice.metadata.generate_name == "web-"


def test_slices_of_endpoints_that_were_made_anew_get_the_new_owner() -> None:
    """With the old owner the garbage collector would delete them."""
    world = World(custom(), endpoints(subset("10.0.0.1")))
    sync(world)
    (before,) = slices(world)
    again = endpoints(subset("10.0.0.1")).with_metadata(uid="anew")
    world.put(again)
    sync(world)
    (after,) = slices(world)
    assert after.name == before.name
    assert [owner.uid for owner in after.metadata.owner_references or ()] == ["anew"]
    assert sync(world).writes == []


def test_slices_that_are_being_deleted_are_passed_over() -> None:
    world = World(custom(), endpoints(subset("10.0.0.1")))
    sync(world)
    (held,) = slices(world)
    held = held.with_metadata(deletion_timestamp=NOW, finalizers=["example.com/hold"])
    world.put(held)
    sync(world)
    assert len(slices(world)) == 2


@pytest.mark.parametrize(
    ("subsets", "expected"),
    [
        pytest.param((), [], id="no subsets"),
        pytest.param(
            (subset("10.0.0.1", "2001:db8::1"),),
            [("IPv4", [80], [("10.0.0.1", True)]), ("IPv6", [80], [("2001:db8::1", True)])],
            id="a slice for each family",
        ),
        pytest.param(
            (subset("10.0.0.1"), subset("10.0.0.2", ports=[{"port": 81}])),
            [("IPv4", [80], [("10.0.0.1", True)]), ("IPv4", [81], [("10.0.0.2", True)])],
            id="and each set of ports",
        ),
        pytest.param(
            (subset("10.0.0.1"), subset("10.0.0.2", "10.0.0.1")),
            [("IPv4", [80], [("10.0.0.1", True), ("10.0.0.2", True)])],
            id="the same ports are one, and an address in it",
        ),
        pytest.param(
            (subset("2001:DB8:0::1"),),
            [("IPv6", [80], [("2001:db8::1", True)])],
            id="written in the usual way",
        ),
    ],
)
def test_slices_by_ports_and_family(subsets: Any, expected: Any) -> None:
    world = World(custom(), endpoints(*subsets))
    sync(world)
    assert sorted(summarize(world)) == sorted(expected)
    assert sync(world).writes == []


def test_addresses_that_are_none_are_left_out_and_told() -> None:
    world = World(custom(), endpoints(subset("10.0.0.1", "nonsense")))
    (event,) = sync(world).events
    assert (event.type, event.reason, event.message) == (
        "Warning",
        "InvalidIPAddress",
        "Skipped 1 invalid IP addresses when mirroring to EndpointSlices",
    )
    assert summarize(world) == [("IPv4", [80], [("10.0.0.1", True)])]


def test_more_addresses_than_allowed_are_left_out_and_told() -> None:
    ips = [f"10.0.0.{number}" for number in range(1, 6)]
    world = World(custom(), endpoints(subset(*ips, not_ready=("10.0.1.1",))))
    (event,) = sync(world, mirroring_max_endpoints_per_subset=3).events
    assert (event.reason, event.message) == (
        "TooManyAddressesToMirror",
        "A max of 3 addresses can be mirrored to EndpointSlices per Endpoints subset. "
        "3 addresses were skipped",
    )
    assert [len(slice_.endpoints) for slice_ in slices(world)] == [3]


def test_a_change_is_made_to_the_slice_that_is_there() -> None:
    world = World(custom(), endpoints(subset("10.0.0.1")))
    sync(world)
    (before,) = slices(world)
    world.put(endpoints(subset("10.0.0.2"), labels={"a": "b"}))
    sync(world)
    (after,) = slices(world)
    assert (after.uid, after.labels["a"]) == (before.uid, "b")
    assert summarize(world) == [("IPv4", [80], [("10.0.0.2", True)])]


def test_slices_of_other_ports_are_used_again() -> None:
    world = World(custom(), endpoints(subset("10.0.0.1")))
    sync(world)
    (before,) = slices(world)
    world.put(endpoints(subset("10.0.0.1", ports=[{"port": 8080}])))
    sync(world)
    assert [slice_.uid for slice_ in slices(world)] == [before.uid]
    assert summarize(world) == [("IPv4", [8080], [("10.0.0.1", True)])]


@pytest.mark.parametrize(
    "later",
    [
        pytest.param((custom(),), id="the endpoints are gone"),
        pytest.param((endpoints(subset("10.0.0.1")),), id="the service is gone"),
        pytest.param(
            (service("web"), endpoints(subset("10.0.0.1"))), id="the service chooses pods"
        ),
        pytest.param(
            (custom(), endpoints(subset("10.0.0.1"), labels={SKIP: "true"})), id="to be skipped"
        ),
        pytest.param(
            (custom(), endpoints(subset("10.0.0.1"), annotations={LEADER_RECORD: "{}"})),
            id="the record of an election",
        ),
    ],
)
def test_slices_that_mirror_nothing_go(later: tuple[KubeObject, ...]) -> None:
    world = World(custom(), endpoints(subset("10.0.0.1")))
    sync(world)
    (endpoint_slice,) = slices(world)
    theirs = {"labels": {SERVICE_NAME: "web"}, "uid": "theirs", "resource_version": "1"}
    others = sample("endpointslices.discovery.k8s.io").with_metadata(**theirs)
    world = World(endpoint_slice, others, *later)
    sync(world)
    assert slices(world) == [others]


def test_endpoints_that_are_deleted_get_no_new_slices() -> None:
    gone = endpoints(subset("10.0.0.1")).with_metadata(deletion_timestamp=NOW)
    assert sync(World(custom(), gone)).writes == []


def test_changes_within_the_batch_period_are_mirrored_together() -> None:
    controller = EndpointSliceMirroringController(
        EndpointSliceMirroringOptions(
            mirroring_endpointslice_updates_batch_period=timedelta(seconds=10)
        )
    )
    objects = (custom(), endpoints(subset("10.0.0.1")))
    first = controller.reconcile(KEY, FakeView(*objects))
    assert (first.writes, first.requeue_after) == ([], 10)
    memory = dict(first.state or {})
    soon = FakeView(*objects, now=NOW + timedelta(seconds=4), memory=memory)
    again = controller.reconcile(KEY, soon)
    assert (again.writes, again.requeue_after, again.state) == ([], 6, memory)
    due = FakeView(*objects, now=NOW + timedelta(seconds=10), memory=memory)
    last = controller.reconcile(KEY, due)
    assert (len(last.writes), last.state) == (1, {})


# --- which keys

MINE = endpoints(subset("10.0.0.1"))
SKIPPED = endpoints(labels={SKIP: "true"})


@pytest.mark.parametrize(
    ("old", "new", "present", "expected"),
    [
        (None, MINE, (custom(),), [KEY]),
        (None, MINE, (), [KEY]),
        (None, MINE, (service("web"),), []),
        (MINE, None, (custom(),), [KEY]),
        (MINE, SKIPPED, (custom(),), [KEY]),
        (SKIPPED, SKIPPED, (custom(),), []),
    ],
)
def test_keys_of_endpoints(old: Any, new: Any, present: Any, expected: list[str]) -> None:
    assert list(find_mirrored_endpoints(Change(old, new), FakeView(*present))) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, custom(), [KEY]),
        (None, service("web"), []),
        (custom(), None, [KEY]),
        (custom(), service("web"), [KEY]),
        (service("web"), custom(), [KEY]),
        (custom(), custom(), []),
    ],
)
def test_keys_of_services(old: Any, new: Any, expected: list[str]) -> None:
    assert list(service_without_selector(Change(old, new), FakeView())) == expected


def test_keys_of_slices() -> None:
    ours = sample("endpointslices.discovery.k8s.io").with_metadata(
        labels={MANAGED_BY: OURS, SERVICE_NAME: "web"}
    )
    other = ours.with_metadata(labels={SERVICE_NAME: "web"})
    view = FakeView()
    assert list(endpoints_of_slice(Change(None, ours), view)) == [KEY]
    assert list(endpoints_of_slice(Change(ours, other), view)) == [KEY]
    assert list(endpoints_of_slice(Change(other, None), view)) == []
