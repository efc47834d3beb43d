"""Tests which addresses and ports the Endpoints of a service have."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import (
    ContainerPort,
    EndpointAddress,
    Endpoints,
    EndpointSubset,
    Pod,
    ServicePort,
)
from kcm.controllers.endpoints import endpoint as module
from kcm.controllers.endpoints.endpoint import (
    MANAGED,
    MOST,
    OURS,
    TRUNCATED,
    EndpointsController,
    service_of_endpoints,
    truncate_subsets,
)
from kcm.helpers.pods import HEADLESS, LEADER_RECORD
from kcm.reconcile.contract import Change
from kcm.testing.builders import container, object_meta, pod, service
from kcm.testing.views import NOW
from kcm.testing.world import World
from tests.unit.controllers.endpoints.test_endpointslice import backend


def sync(world: World) -> Endpoints | None:
    world.carry_out(EndpointsController().reconcile("default/web", world.view()))
    return next((obj for obj in world.of(Endpoints) if isinstance(obj, Endpoints)), None)


def summarize(endpoints: Endpoints | None) -> list[tuple[list[str], list[str], list[int]]]:
    assert endpoints is not None
    return [
        (
            [a.ip for a in subset.addresses or ()],
            [a.ip for a in subset.not_ready_addresses or ()],
            [p.port for p in subset.ports or ()],
        )
        for subset in endpoints.subsets or ()
    ]


def test_ready_pods_and_others_are_told_apart() -> None:
    world = World(service(), backend(1), backend(2, ready=False))
    assert summarize(sync(world)) == [(["10.0.0.2"], ["10.0.0.3"], [80])]


def test_terminating_pods_are_left_out() -> None:
    world = World(service(), backend(1), backend(2, deleting=NOW))
    assert summarize(sync(world)) == [(["10.0.0.2"], [], [80])]


def test_a_service_without_pods_has_empty_endpoints() -> None:
    assert summarize(sync(World(service()))) == []


def test_all_are_published_where_that_is_asked_for() -> None:
    world = World(service(publish_not_ready_addresses=True), backend(1, ready=False))
    assert summarize(sync(world)) == [(["10.0.0.2"], [], [80])]


def test_a_headless_service_is_labelled_so() -> None:
    endpoints = sync(World(service(cluster_ip="None", labels={"a": "b"}), backend(1)))
    assert endpoints is not None
    assert {"a": "b", HEADLESS: ""}.items() <= endpoints.labels.items()


def test_ports_that_a_pod_does_not_have_leave_it_out() -> None:
    named = ServicePort(port=80, target_port="web")
    assert summarize(sync(World(service(ports=[named]), backend(1)))) == []


def test_nothing_is_written_while_nothing_changes() -> None:
    world = World(service(), backend(1))
    first = sync(world)
    assert sync(world) is first


def test_too_many_addresses_are_cut_ready_ones_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    world = World(service(), backend(0, ready=False), backend(1), backend(2))
    endpoints = sync(world)
    assert summarize(endpoints) == [(["10.0.0.2", "10.0.0.3"], [], [80])]
    assert endpoints is not None
    assert endpoints.annotations[TRUNCATED] == "truncated"


def by_hand(**metadata: Any) -> Endpoints:
    meta = object_meta("Endpoints", "web", "default", overrides=metadata)
    return Endpoints(metadata=meta, subsets=[])


@pytest.mark.parametrize("selector", [{"app": "web"}, {}], ids=["ours", "made by hand"])
def test_endpoints_go_with_their_service(selector: dict[str, str]) -> None:
    """Upstream's syncService deletes them, whoever created them."""
    world = World(service(selector=selector), backend(1), *([] if selector else [by_hand()]))
    assert sync(world) is not None
    obj = world.objects["services", "default/web"]
    world.remove(obj)
    assert sync(world) is None
    assert list(service_of_endpoints(Change(obj, None), world.view())) == ["default/web"]


def test_endpoints_go_only_while_there_is_no_service() -> None:
    world = World(by_hand())
    plan = EndpointsController().reconcile("default/web", world.view())
    assert [str(guard) for write in plan.writes for guard in write.guards] == [
        "absent services default/web "
    ]


def test_records_of_elections_need_no_service() -> None:
    """Upstream's checkLeftoverEndpoints keeps Endpoints that are records of a leader election."""
    record = by_hand(annotations={LEADER_RECORD: "{}"})
    assert sync(World(record)) == record


def test_endpoints_that_come_before_their_service_are_no_news() -> None:
    before, ours = by_hand(), by_hand(labels={MANAGED: OURS})
    view = World().view()
    assert list(service_of_endpoints(Change(None, before), view)) == []
    assert list(service_of_endpoints(Change(None, ours), view)) == ["default/web"]
    assert list(service_of_endpoints(Change(before, None), view)) == ["default/web"]
    assert list(service_of_endpoints(Change(ours, before), view)) == ["default/web"]


def test_a_service_that_is_being_deleted_keeps_right_endpoints() -> None:
    """Upstream's syncService does not look at the deletion timestamp."""
    world = World(service(), backend(1))
    sync(world)
    world.put(service(metadata={"deletion_timestamp": NOW}))
    world.remove(world.objects["pods", "default/web-0001"])
    assert summarize(sync(world)) == []


def test_addresses_go_by_ip_not_by_the_names_of_pods() -> None:
    """Upstream's SortSubsets sorts the addresses as texts."""
    pods = [
        pod(name, labels={"app": "web"}, status={"phase": "Running", "pod_ip": ip})
        for name, ip in (("a", "10.0.0.9"), ("b", "10.0.0.10"), ("c", "10.0.0.1"))
    ]
    (summary,) = summarize(sync(World(service(publish_not_ready_addresses=True), *pods)))
    assert summary[0] == ["10.0.0.1", "10.0.0.10", "10.0.0.9"]  # as text


def build_listening_pod(number: int, *names: str, ready: bool = True) -> Pod:
    every = {"a": 1, "b": 2, "c": 3}
    given = [ContainerPort(name=name, container_port=every[name]) for name in names]
    return backend(number, ready=ready, containers=[container(ports=given)])


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param(
            [build_listening_pod(1, "a", "b"), build_listening_pod(2, "a", "b")],
            [(["10.0.0.2", "10.0.0.3"], [], [1, 2])],
            id="one set, multiple ports",
        ),
        pytest.param(
            [build_listening_pod(1, "a", "b"), build_listening_pod(2, "a")],
            [(["10.0.0.2", "10.0.0.3"], [], [1]), (["10.0.0.2"], [], [2])],
            id="two sets, overlapping",
        ),
        pytest.param(
            [build_listening_pod(1, "a"), build_listening_pod(2, "b")],
            [(["10.0.0.2"], [], [1]), (["10.0.0.3"], [], [2])],
            id="two sets, dup port, mismatched",
        ),
        pytest.param(
            [build_listening_pod(1, "a", "b"), build_listening_pod(2, "a", "b", ready=False)],
            [(["10.0.0.2"], ["10.0.0.3"], [1, 2])],
            id="one set, one not ready",
        ),
        pytest.param([build_listening_pod(1)], [], id="no port found"),
    ],
)
def test_ports_with_the_same_pods_share_a_subset(pods: list[Pod], expected: list[Any]) -> None:
    """Those cases of upstream's TestPackSubsets that the pods of a service can have."""
    named = [ServicePort(name=name, port=80 + n, target_port=name) for n, name in enumerate("ab")]
    assert summarize(sync(World(service(ports=named), *pods))) == expected


@pytest.mark.parametrize(("cluster_ip", "published"), [("None", ["10.0.0.2"]), ("10.9.9.9", [])])
def test_only_a_headless_service_may_do_without_ports(
    cluster_ip: str, published: list[str]
) -> None:
    """Upstream's TestSyncEndpointsHeadlessWithoutPort."""
    endpoints = sync(World(service(ports=[], cluster_ip=cluster_ip), backend(1)))
    assert [ips for ips, _, _ in summarize(endpoints)] == ([published] if published else [])
    assert all(ports == [] for _, _, ports in summarize(endpoints))


@pytest.mark.parametrize(
    ("ready", "unready", "ready_left", "unready_left"),
    [
        pytest.param([], [], [], [], id="empty"),
        pytest.param(
            [50, 100, 100, 100, 100],
            [50, 100, 100, 100, 100],
            [50, 100, 100, 100, 100],
            [50, 100, 100, 100, 100],
            id="total endpoints < max capacity",
        ),
        pytest.param([100] * 5, [100] * 5, [100] * 5, [100] * 5, id="= max capacity"),
        pytest.param(
            [90, 110, 50, 10, 20],
            [101, 200, 200, 201, 298],
            [90, 110, 50, 10, 20],
            [73, 144, 144, 145, 214],
            id="total ready endpoints < max capacity, but total endpoints > max capacity",
        ),
        pytest.param(
            [205, 400, 402, 400, 693],
            [100, 200, 200, 200, 300],
            [98, 191, 192, 191, 328],
            [0] * 5,
            id="total ready endpoints > max capacity",
        ),
        # Not upstream's: what nothing is left of goes.
        pytest.param([999, 1, 1], [0, 1, 5], [999, 1], [0, 0], id="nothing left of one"),
    ],
)
def test_too_many_addresses_are_cut_in_proportion(
    ready: list[int], unready: list[int], ready_left: list[int], unready_left: list[int]
) -> None:
    """Upstream's TestTruncateEndpoints."""

    def addresses(count: int) -> list[EndpointAddress]:
        return [EndpointAddress(ip="10.0.0.1")] * count

    subsets = [
        EndpointSubset(addresses=addresses(up), not_ready_addresses=addresses(down))
        for up, down in zip(ready, unready, strict=True)
    ]
    endpoint_subsets, truncated = truncate_subsets(MOST, subsets)
    assert [len(subset.addresses or ()) for subset in endpoint_subsets] == ready_left
    assert [len(subset.not_ready_addresses or ()) for subset in endpoint_subsets] == unready_left
    assert truncated is (sum(ready) + sum(unready) > MOST)


def test_flips_back_and_forth_end_where_the_pods_are_127370() -> None:
    world = World(service(), backend(1))
    for ready in (False, True, False, True):
        flipped = backend(1, ready=ready)
        world.put(flipped)
        expected: Any = (["10.0.0.2"], []) if ready else ([], ["10.0.0.2"])
        assert summarize(sync(world))[0][:2] == expected


def test_pods_without_an_address_are_no_endpoints() -> None:
    assert summarize(sync(World(service(), pod("web-1", labels={"app": "web"})))) == []
