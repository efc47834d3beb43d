"""Endpoints: addresses by readiness and ports."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import Endpoints, ServicePort
from kcm.api.meta_v1 import ObjectMeta
from kcm.controllers import endpoint as module
from kcm.controllers.endpoint import TRUNCATED, EndpointsController
from kcm.reconcile.backends import HEADLESS
from tests.builders import pod, service
from tests.unit.controllers.test_endpointslice import backend
from tests.views import NOW
from tests.world import World


def synced(world: World) -> Endpoints | None:
    world.carry_out(EndpointsController().reconcile("default/web", world.view()))
    found = world.of(Endpoints)
    assert all(isinstance(one, Endpoints) for one in found)
    return found[0] if found else None  # type: ignore[return-value] # checked above


def shown(found: Endpoints | None) -> list[tuple[list[str], list[str], list[int]]]:
    assert found is not None
    return [
        (
            [a.ip for a in subset.addresses or ()],
            [a.ip for a in subset.not_ready_addresses or ()],
            [p.port for p in subset.ports or ()],
        )
        for subset in found.subsets or ()
    ]


def test_ready_pods_and_others_are_told_apart() -> None:
    world = World(service(), backend(1), backend(2, ready=False))
    assert shown(synced(world)) == [(["10.0.0.2"], ["10.0.0.3"], [80])]


def test_terminating_pods_are_left_out() -> None:
    world = World(service(), backend(1), backend(2, deleting=NOW))
    assert shown(synced(world)) == [(["10.0.0.2"], [], [80])]


def test_a_service_without_pods_has_empty_endpoints() -> None:
    assert shown(synced(World(service()))) == []


def test_all_are_published_where_that_is_asked_for() -> None:
    world = World(service(publish_not_ready_addresses=True), backend(1, ready=False))
    assert shown(synced(world)) == [(["10.0.0.2"], [], [80])]


def test_a_headless_service_is_labelled_so() -> None:
    found = synced(World(service(cluster_ip="None", labels={"a": "b"}), backend(1)))
    assert found is not None
    assert {"a": "b", HEADLESS: ""}.items() <= found.labels.items()


def test_ports_that_a_pod_does_not_have_leave_it_out() -> None:
    named = ServicePort(port=80, target_port="web")
    assert shown(synced(World(service(ports=[named]), backend(1)))) == []


def test_nothing_is_written_while_nothing_changes() -> None:
    world = World(service(), backend(1))
    first = synced(world)
    assert synced(world) is first


def test_too_many_addresses_are_cut_ready_ones_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    world = World(service(), backend(0, ready=False), backend(1), backend(2))
    found = synced(world)
    assert shown(found) == [(["10.0.0.2", "10.0.0.3"], [], [80])]
    assert found is not None
    assert found.annotations[TRUNCATED] == "truncated"


def test_ours_go_with_their_service_and_others_stay() -> None:
    world = World(service(), backend(1))
    synced(world)
    world.objects.pop(("services", "default/web"))
    assert synced(world) is None
    by_hand = Endpoints(metadata=ObjectMeta(name="web", namespace="default"), subsets=[])
    world.objects[("endpoints", by_hand.key)] = by_hand
    assert synced(world) is by_hand


def test_flips_back_and_forth_end_where_the_pods_are_127370() -> None:
    world = World(service(), backend(1))
    for ready in (False, True, False, True):
        flipped = backend(1, ready=ready)
        world.objects[("pods", flipped.key)] = flipped
        expected: Any = (["10.0.0.2"], []) if ready else ([], ["10.0.0.2"])
        assert shown(synced(world))[0][:2] == expected


def test_pods_without_an_address_are_no_endpoints() -> None:
    assert shown(synced(World(service(), pod("web-1", labels={"app": "web"})))) == []
