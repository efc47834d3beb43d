"""Tests which slices are created, updated and deleted when services and ports change."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kcm.api.core_v1 import ContainerPort, Pod, Service, ServicePort
from kcm.api.discovery_v1 import EndpointSlice
from kcm.controllers.endpoints.endpointslice import EndpointSliceController, EndpointSliceOptions
from kcm.controllers.endpoints.endpointslice.controller import SYNCS
from kcm.reconcile.plan import Create, Delete, Patch, Plan
from kcm.testing.builders import container, node, service
from kcm.testing.views import NOW, FakeView
from kcm.testing.world import World
from tests.unit.controllers.endpoints.test_endpointslice import backend, slices, sync

WORDS: dict[type, str] = {Create: "create", Patch: "update", Delete: "delete"}


def put(world: World, obj: Any) -> None:
    world.put(obj)


def reconcile(world: World, most: int = 100) -> Plan:
    controller = EndpointSliceController(EndpointSliceOptions(max_endpoints_per_slice=most))
    return controller.reconcile("default/web", FakeView(*world.objects.values()))


def words(plan: Plan) -> dict[str, int]:
    """Returns how many slices a plan creates, updates and deletes, by verb."""
    return dict(Counter(WORDS[type(write)] for write in plan.writes))


def build_synced_world(count: int = 3, most: int = 100, **spec: Any) -> World:
    world = World(service(**spec), *(backend(number) for number in range(count)))
    sync(world, most)
    return world


def ports(*pairs: tuple[str, int]) -> list[ServicePort]:
    return [ServicePort(name=name, port=port) for name, port in pairs]


# --- services of the same name


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        pytest.param({}, {}, id="slice owned by Service"),
        pytest.param({"uid": "other"}, {"create": 1, "delete": 1}, id="by other Service UID"),
        pytest.param({"kind": "Pod"}, {"create": 1, "delete": 1}, id="by what is no Service"),
    ],
)
def test_slices_of_an_earlier_service_are_replaced(
    reference: dict[str, str], expected: dict[str, int]
) -> None:
    """Upstream's TestReconcileEndpointSlicesRecreation."""
    world = build_synced_world()
    (endpoint_slice,) = slices(world)
    (owner,) = endpoint_slice.metadata.owner_references or []
    put(world, endpoint_slice.with_metadata(owner_references=[owner.replace(**reference)]))
    plan = reconcile(world)
    assert words(plan) == expected
    world.carry_out(plan)
    (left,) = slices(world)
    assert len(left.endpoints) == 3
    assert words(reconcile(world)) == {}


def test_a_service_made_anew_has_endpoints_before_the_old_slices_are_collected() -> None:
    world = build_synced_world()
    (old,) = slices(world)
    put(world, service().with_metadata(uid="anew"))
    sync(world)
    (endpoint_slice,) = slices(world)
    assert endpoint_slice.name != old.name
    assert [reference.uid for reference in endpoint_slice.metadata.owner_references or ()] == [
        "anew"
    ]


@pytest.mark.parametrize(
    ("labels", "deleting", "expected"),
    [
        pytest.param({"app": "web"}, False, {"create": 1}, id="create, not deleted"),
        pytest.param({"app": "web"}, True, {}, id="create, deleted"),
    ],
)
def test_a_service_that_is_deleted_gets_no_new_slices(
    labels: dict[str, str], deleting: bool, expected: dict[str, int]
) -> None:
    """Upstream's TestReconcilerFinalizeSvcDeletionTimestamp."""
    new_service = service(metadata={"deletion_timestamp": NOW if deleting else None})
    assert words(reconcile(World(new_service, backend(1, labels=labels)))) == expected


@pytest.mark.parametrize("deleting", [False, True])
def test_what_a_service_has_is_kept_right_until_it_is_gone(deleting: bool) -> None:
    """Upstream's TestReconcilerFinalizeSvcDeletionTimestamp: its updates, deletes and recycling."""
    world = build_synced_world(4, most=2)
    put(world, service(metadata={"deletion_timestamp": NOW if deleting else None}))
    world.remove(world.objects["pods", "default/web-0000"])
    assert words(reconcile(world, 2)) == {"update": 1}
    world.remove(world.objects["pods", "default/web-0001"])
    assert words(reconcile(world, 2)) == {"delete": 1}
    put(world, backend(9, containers=_build_containers(9090)))
    put(world, _with_ports(world, [ServicePort(name="", port=80, target_port="web")]))
    for number in (2, 3):
        put(world, backend(number, containers=_build_containers(8080)))
    assert words(reconcile(world, 2)) == {"update": 2}


def _build_containers(number: int) -> list[Any]:
    return [container(ports=[ContainerPort(name="web", container_port=number)])]


def _with_ports(world: World, given: list[ServicePort]) -> Service:
    obj = world.objects["services", "default/web"]
    assert isinstance(obj, Service)
    return obj.with_spec(obj.spec.replace(ports=given))


def test_slices_that_are_being_deleted_are_passed_over() -> None:
    """Upstream's TestSyncServiceEndpointSlicePendingDeletion."""
    world = build_synced_world()
    (endpoint_slice,) = slices(world)
    put(
        world, endpoint_slice.with_metadata(deletion_timestamp=NOW, finalizers=["example.com/hold"])
    )
    assert words(reconcile(world)) == {"create": 1}


# --- ports


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param([("http", 8080)], {"update": 3}, id="another number"),
        pytest.param([("web", 80), ("tls", 443)], {"update": 3}, id="another name"),
        pytest.param([("http", 80), ("tls", 443)], {}, id="the same"),
        pytest.param([("tls", 443), ("http", 80)], {}, id="in another order"),
    ],
)
def test_slices_are_recycled_when_ports_change(
    after: list[tuple[str, int]], expected: dict[str, int]
) -> None:
    """Upstream's TestReconcileEndpointSlicesRecycling and NewPortMapKey."""
    world = build_synced_world(6, most=2, ports=ports(("http", 80), ("tls", 443)))
    names = [slice_.name for slice_ in slices(world)]
    put(world, _with_ports(world, ports(*after)))
    plan = reconcile(world, 2)
    assert words(plan) == expected
    world.carry_out(plan)
    left = slices(world)
    assert [slice_.name for slice_ in left] == names
    assert {tuple(sorted((p.name or "", p.port or 0) for p in s.ports or ())) for s in left} == {
        tuple(sorted(after))
    }
    assert words(reconcile(world, 2)) == {}


def test_more_slices_than_were_there_are_created_fewer_are_deleted() -> None:
    world = build_synced_world(4, most=2)
    put(world, _with_ports(world, ports(("http", 8080))))
    for number in (7, 8):
        put(world, backend(number))
    assert words(reconcile(world, 2)) == {"update": 2, "create": 1}
    for number in (0, 1, 2, 3):
        world.remove(world.objects["pods", f"default/web-000{number}"])
    assert words(reconcile(world, 2)) == {"update": 1, "delete": 1}


# --- without endpoints


def test_the_last_slice_becomes_the_placeholder() -> None:
    world = build_synced_world(4, most=2)
    names = {slice_.name for slice_ in slices(world)}
    for number in range(4):
        world.remove(world.objects["pods", f"default/web-000{number}"])
    plan = reconcile(world, 2)
    assert words(plan) == {"update": 1, "delete": 1}
    world.carry_out(plan)
    (left,) = slices(world)
    assert left.name in names
    assert (left.endpoints, left.ports) == ([], [])
    assert words(reconcile(world, 2)) == {}


def test_a_placeholder_becomes_the_first_slice() -> None:
    """Upstream's TestPlaceHolderSliceCompare: an equal placeholder is not written again."""
    world = build_synced_world(0)
    (placeholder,) = slices(world)
    assert words(reconcile(world)) == {}
    put(world, backend(1))
    assert words(reconcile(world)) == {"update": 1}
    sync(world)
    (endpoint_slice,) = slices(world)
    assert (endpoint_slice.name, len(endpoint_slice.ports or ())) == (placeholder.name, 1)


def test_a_placeholder_gets_the_services_labels() -> None:
    world = build_synced_world(0)
    put(world, service(labels={"tier": "a"}))
    assert words(reconcile(world)) == {"update": 1}
    assert sync(world)[0].labels["tier"] == "a"


# --- nodes that are missing


HERE, AWAY = backend(0, node="node-0"), backend(1, node="node-1")


@pytest.mark.parametrize(
    ("publish", "nodes", "present", "expected", "published", "fails"),
    [
        pytest.param(False, 1, False, {"create": 1}, 1, True, id="Create, publishNotReady false"),
        pytest.param(True, 1, False, {"create": 1}, 2, False, id="Create, publishNotReady true"),
        pytest.param(False, 1, True, {"update": 1}, 1, True, id="Update and publishNotReady false"),
        pytest.param(True, 0, True, {}, 2, False, id="publishNotReady true, all nodes missing"),
        pytest.param(True, 1, True, {}, 2, False, id="Update and publishNotReady true"),
        pytest.param(False, 0, True, {"update": 1}, 0, True, id="and no nodes are present"),
    ],
)
def test_pods_of_missing_nodes_are_not_published(
    *,
    publish: bool,
    nodes: int,
    present: bool,
    expected: dict[str, int],
    published: int,
    fails: bool,
) -> None:
    """Upstream's TestReconcilerPodMissingNode."""
    new_service = service(publish_not_ready_addresses=publish)
    world = World(new_service, HERE, AWAY, node("node-0"), node("node-1"))
    if present:
        sync(world)
    for number in range(nodes, 2):
        world.remove(world.objects["nodes", f"node-{number}"])
    plan = reconcile(world)
    assert words(plan) == expected
    assert (plan.error is not None) is fails
    outcome = world.carry_out(plan)
    (left,) = slices(world)
    assert len(left.endpoints) == published
    assert (
        SYNCS.count("error" if fails else "success").items() <= plan.counts_after(outcome).items()
    )


def test_what_is_said_of_missing_nodes_is_bounded() -> None:
    pods: list[Pod] = [backend(number, node="gone") for number in range(500)]
    error = reconcile(World(service(), *pods)).error
    assert str(error).count("Not Found") == 10
    assert "skipping Pod web-0000 for Service default/web: Node gone Not Found" in str(error)


# --- so many to a slice


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (50, [50] * 5),
        (80, [10, 80, 80, 80]),
        (150, [100, 150]),
        (250, [250]),
        (500, [250]),
    ],
)
def test_slices_take_at_most_so_many(most: int, expected: list[int]) -> None:
    """Upstream's TestReconcileMaxEndpointsPerSlice."""
    world = build_synced_world(250, most)
    assert sorted(len(slice_.endpoints) for slice_ in slices(world)) == expected


def test_the_fullest_slice_that_changes_is_filled_first() -> None:
    """Upstream's reconcileByPortMapping sorts the slices that it has to update by length."""
    world = build_synced_world(6, most=3)
    first, second = slices(world)
    gone = [endpoint.target_ref for endpoint in (*first.endpoints[:2], second.endpoints[0])]
    for reference in gone:
        assert reference is not None
        world.remove(world.objects["pods", f"default/{reference.name}"])
    put(world, backend(9))
    sync(world, 3)
    lengths = {slice_.name: len(slice_.endpoints) for slice_ in slices(world)}
    assert lengths == {first.name: 1, second.name: 3}


def test_slices_are_owned_by_their_service() -> None:
    (endpoint_slice,) = slices(build_synced_world())
    assert isinstance(endpoint_slice, EndpointSlice)
    (owner,) = endpoint_slice.metadata.owner_references or []
    assert (owner.api_version, owner.kind, owner.uid) == ("v1", "Service", service().uid)


def test_a_slice_that_has_more_than_is_allowed_now_gets_no_more() -> None:
    """After the limit was lowered, a slice keeps its endpoints, and new ones go into other
    slices.
    """
    world = build_synced_world(10)
    gone = next(obj for obj in world.of(Pod) if obj.name == backend(9).name)
    world.remove(world.objects["pods", gone.key])
    for number in range(10, 16):
        put(world, backend(number))
    sync(world, 5)
    assert sorted(len(slice_.endpoints) for slice_ in slices(world)) == [1, 5, 9]
    assert words(reconcile(world, 5)) == {}
