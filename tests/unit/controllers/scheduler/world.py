"""Runs a scheduler's pass on plain objects, and returns the nodes that pods were bound to."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import datetime
from itertools import count
from typing import Any

from kcm.api.core_v1 import Container, ContainerPort, Node, Pod, ResourceRequirements, Taint
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apimachinery.quantity import Quantity
from kcm.controllers.scheduler import SchedulerController, SchedulerOptions
from kcm.controllers.scheduler.nodeinfo import PodInfo
from kcm.controllers.scheduler.placer import Placer
from kcm.controllers.scheduler.snapshot import Snapshot
from kcm.controllers.scheduler.status import FitError
from kcm.controllers.scheduler.template import TemplateContext, Templates
from kcm.helpers.pods import condition_of
from kcm.reconcile.plan import Bind, Delete, Patch, Plan
from kcm.testing import builders
from kcm.testing.views import NOW, FakeView

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
OPTIONS = SchedulerOptions()
_VERSIONS = count(1)


def quantities(amounts: Mapping[str, str | int]) -> dict[str, Quantity]:
    return {name: Quantity(amount) for name, amount in amounts.items()}


def build_container(*ports: int, image: str = "nginx:1", **requests: str | int) -> Container:
    """Returns a container with requests and host ports.

    The request `nvidia` stands for an extended resource.
    """
    named = {name.replace("nvidia", "nvidia.com/gpu"): a for name, a in requests.items()}
    return Container(
        name="c",
        image=image,
        resources=ResourceRequirements(requests=quantities(named)),
        ports=[ContainerPort(container_port=p, host_port=p, protocol="TCP") for p in ports],
    )


def pod(name: str = "p", cpu: str | int = 0, **fields: Any) -> Pod:
    """Returns a pod of one container, with a generation and a resourceVersion, as if stored."""
    if cpu:
        fields.setdefault("containers", [build_container(cpu=cpu)])
    system = {"generation": 1, "resource_version": str(next(_VERSIONS))}
    metadata = system | fields.pop("metadata", {})
    return builders.pod(name, metadata=metadata, **fields)


def node(name: str, cpu: str = "4", zone: str = "", **fields: Any) -> Node:
    labels = dict(fields.pop("labels", {}))
    if zone:
        labels[ZONE] = zone
    return builders.node(name, cpu=cpu, labels=labels, **fields)


def taint(key: str = "k", value: str | None = "v", effect: str = "NoSchedule") -> Taint:
    return Taint(key=key, value=value, effect=effect)


class Scene:
    """A snapshot of nodes and their pods, with a placer."""

    def __init__(self, *objects: KubeObject, options: SchedulerOptions = OPTIONS) -> None:
        self.snapshot = Snapshot()
        nodes = [obj for obj in objects if isinstance(obj, Node)]
        pods = [obj for obj in objects if isinstance(obj, Pod)]
        self.snapshot.update(1, nodes, pods, [builders.namespace("default")])
        self.templates = Templates(TemplateContext(self.snapshot, options))
        self.placer = Placer(self.snapshot, self.templates, options, random.Random(1))

    def info(self, pod: Pod) -> PodInfo:
        """Returns the pod as a waiting one, which is in the snapshot."""
        pod_info = PodInfo(pod)
        if pod_info.uid not in self.snapshot.pods:
            # `update` would take changes from a watch log, which is not here.
            self.snapshot._put_in(pod_info)
        return self.snapshot.pods[pod_info.uid]

    def refusals(self, pod: Pod) -> dict[str, tuple[str, ...]]:
        """Returns the reasons of each node that the pod does not fit on, by node name."""
        info = self.info(pod)
        template = self.templates.of(info)
        statuses = {n.name: self.placer.check(template, info, n) for n in self.snapshot.nodes}
        return {name: status.reasons for name, status in statuses.items() if status is not None}

    def codes(self, pod: Pod) -> dict[str, int]:
        info = self.info(pod)
        template = self.templates.of(info)
        statuses = {n.name: self.placer.check(template, info, n) for n in self.snapshot.nodes}
        return {name: status.code for name, status in statuses.items() if status is not None}

    def scores(self, pod: Pod) -> dict[str, int]:
        template = self.templates.of(self.info(pod))
        indexes = range(len(self.snapshot.nodes))
        scores = template.scores(list(indexes))
        return {self.snapshot.nodes[n].name: scores[n] for n in indexes}

    def place(self, pod: Pod) -> str:
        """Binds the pod in the snapshot; returns the node's name, '' if there is none."""
        info = self.info(pod)
        placement = self.placer.place(info)
        if isinstance(placement, FitError):
            return ""
        self.snapshot.assume(info, placement)
        return placement.name

    def why(self, pod: Pod) -> str:
        placement = self.placer.place(self.info(pod))
        assert isinstance(placement, FitError)
        return placement.text


def controller(**options: Any) -> SchedulerController:
    return SchedulerController(SchedulerOptions(**options), random.Random(1))


def run(
    scheduler: SchedulerController,
    *objects: KubeObject,
    memory: Mapping[str, str] | None = None,
    now: datetime = NOW,
    position: int = 1,
) -> Plan:
    view = FakeView(*objects, now=now, memory=memory, position=position)
    return scheduler.reconcile("default-scheduler", view)


def bindings(plan: Plan) -> dict[str, str]:
    """Returns the node's name for each pod that the plan binds, by pod name."""
    nodes_by_pod = {}
    for write in plan.writes:
        if isinstance(write, Bind):
            assert isinstance(write.new, Pod)
            nodes_by_pod[write.new.name] = write.new.spec.node_name or ""
    return nodes_by_pod


def victims(plan: Plan) -> list[str]:
    return [write.old.name for write in plan.writes if isinstance(write, Delete)]


def apply_patches(plan: Plan) -> dict[str, Pod]:
    """Returns the pods with the plan's status patches applied, by name."""
    pods_by_name = {}
    for write in plan.writes:
        if isinstance(write, Patch):
            new = write.change(write.old)
            assert isinstance(new, Pod)
            pods_by_name[new.name] = new
    return pods_by_name


def message(plan: Plan, name: str) -> str:
    """Returns the message of a pod's PodScheduled condition."""
    condition = condition_of(apply_patches(plan)[name].status, "PodScheduled")
    assert condition is not None
    return condition.message or ""
