"""Whatever the API accepts, nothing that reads it fails: no controller, no pass of the scheduler,
no part of a node, no table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kcm.api.core_v1 import Node, Pod, Service
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.cache.entries import Entry
from kcm.apiserver.http.responses import Form
from kcm.apiserver.objects.tables import table
from kcm.errors import ContainerConfigError
from kcm.kinds.quota.evaluators import evaluator_of
from kcm.kubelet import admission
from kcm.kubelet.environment.variables import PodLocation, make_environment
from kcm.kubelet.eviction.ranking import rank_pods
from kcm.kubelet.eviction.thresholds import Signal
from kcm.kubelet.kuberuntime import actions, configs
from kcm.kubelet.kuberuntime.view import PodView
from kcm.kubelet.status.generate import StatusContext, conclude_status, generate_status
from kcm.reconcile.contract import Change, Controller
from kcm.registry import controller_types
from kcm.store import DeleteOptions
from kcm.store.writes.deletion import prepare_delete
from kcm.testing import builders
from kcm.testing.views import NOW, FakeView
from tests.lookups import FakeLookups
from tests.samples import manifest
from tests.shapes import NAMES, accept, bodies
from tests.unit.controllers.scheduler.world import Scene
from tests.unit.kubelet.views import container_view
from tests.unit.simulation.life import Life

CONTROLLERS = [type_() for type_ in controller_types()]
_KEYS = 5  # that are synced, of those that one object adds for a controller


def quick(examples: int) -> Callable[[Any], Any]:
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


@cache
def others() -> tuple[KubeObject, ...]:
    """One object of every kind."""
    objects = [accept(manifest(name)) for name in NAMES]
    return tuple(obj for obj in objects if obj is not None)


class NoFigures:
    """Metrics of a cluster in which nothing is measured."""

    def pods(self, pods: Any) -> Any:
        return {}

    def of_pods(self, metric: str, pods: Any, selector: Any) -> Any:
        return {}

    def of_objects(self, resource: str, metric: str, keys: Any, selector: Any) -> Any:
        return {}

    def external(self, namespace: str, metric: str, selector: Any) -> Any:
        return ()


def drive(controller: Controller, obj: KubeObject) -> None:
    """Everything that a controller does with an object that comes, changes and goes."""
    rest = [other for other in others() if type(other) is not type(obj)]
    view = FakeView(obj, *rest, metrics=NoFigures())
    for key in sorted(keys_of(controller, obj, view))[:_KEYS]:
        controller.reconcile(key, view)
    for tick in controller.ticks():
        tick.run(view, {})


def keys_of(controller: Controller, obj: KubeObject, view: FakeView) -> set[str]:
    changes = (Change(None, obj), Change(obj, obj), Change(obj, None))
    watches = [w for w in controller.watches() if w.model is None or isinstance(obj, w.model)]
    return {key for watch in watches for change in changes for key in watch.keys(change, view)}


@pytest.mark.parametrize("name", NAMES)
@quick(4)
@given(data=st.data())
def test_no_controller_and_no_table_fails_over_an_object(name: str, data: st.DataObject) -> None:
    obj = accept(data.draw(bodies(name)))
    assume(obj is not None)
    assert obj is not None
    resource = BUILT_IN.by_name(name)
    for controller in CONTROLLERS:
        drive(controller, obj)
    table(resource, [Entry.build(resource, obj, 1)], Form("Table"), "None", {})
    evaluator_of(resource).usage(obj, NOW)
    prepare_delete(obj, resource, DeleteOptions(), NOW)
    if isinstance(obj, Node):
        Scene(obj).place(builders.pod("another"))


@quick(80)
@given(body=bodies("pods"))
def test_no_part_of_a_node_fails_over_a_pod(body: dict[str, Any]) -> None:
    pod = accept(body)
    assume(pod is not None)
    assert isinstance(pod, Pod)
    nodes = [obj for obj in others() if isinstance(obj, Node)]
    scene = Scene(*nodes, pod)
    if not pod.spec.node_name:
        scene.place(pod)
    scene.place(builders.pod("another"))
    taken = admission.NodeUsage.of([pod])
    for node in nodes:
        admission.check_predicates(pod, taken, admission.NodeUsage.of([pod]), node)
    for signal in Signal:
        rank_pods(signal, [pod], {})
    start(pod)
    report(pod)
    life = Life(pod)
    for seconds in (0.0, 1.5, 4.0, 100.0, 5000.0):
        life.step(seconds)


def start(pod: Pod) -> None:
    """What a node makes of a pod before its containers start."""
    configs.build_sandbox_config(pod, 0, Path("/logs"))
    for container in containers(pod):
        try:
            services = tuple(obj for obj in others() if isinstance(obj, Service))
            known = FakeLookups(all_services=services)
            environment = make_environment(pod, container, known, PodLocation(("10.1.0.1",)))
            context = configs.ContainerContext(memory_capacity=2**33)
            configs.build_container_config(pod, container, 0, environment, (), context=context)
        except ContainerConfigError:
            continue


def report(pod: Pod) -> None:
    """What a node tells of a pod, its containers running or ended."""
    around = StatusContext(("10.0.0.1",), "process", lambda *_: None, lambda _, status: status)
    for state in ("running", "1"):
        seen = [container_view(container.name, state) for container in containers(pod)]
        view = PodView(pod.uid, containers=seen)
        actions.compute_pod_actions(pod, view)
        for over in (False, True):
            conclude_status(pod, generate_status(pod, pod.status, view, around, over=over))


def containers(pod: Pod) -> Iterator[Any]:
    yield from pod.spec.init_containers or ()
    yield from pod.spec.containers
