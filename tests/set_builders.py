"""Builders of StatefulSets and DaemonSets, and a kubelet for worlds of plain objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kcm.api.apps_v1 import DaemonSet, DaemonSetSpec, StatefulSet, StatefulSetSpec
from kcm.api.core_v1 import Pod, PodSpec, PodTemplateSpec
from kcm.apimachinery.meta_v1 import LabelSelector, ObjectMeta
from kcm.kinds.defaults import apply
from kcm.testing import builders
from kcm.testing.world import World


def template(labels: Mapping[str, str], image: str = "nginx:1.25", **spec: Any) -> PodTemplateSpec:
    """Returns a pod template with these labels and one container."""
    pod = PodSpec(**({"containers": [builders.container(image=image)]} | spec))
    return PodTemplateSpec(metadata=ObjectMeta(labels=dict(labels)), spec=pod)


def stateful_set(
    name: str = "web",
    *,
    replicas: int = 3,
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> StatefulSet:
    """Returns a StatefulSet of pods with the label app=<name>."""
    labels = {"app": name}
    fields: dict[str, Any] = {
        "replicas": replicas,
        "selector": LabelSelector(match_labels=labels),
        "template": template(labels),
        "service_name": name,
    }
    overrides = {"generation": 1} | dict(metadata or {})
    meta = builders.object_meta("StatefulSet", name, "default", labels=labels, overrides=overrides)
    return apply(StatefulSet(metadata=meta, spec=StatefulSetSpec(**(fields | spec))))


def daemon_set(
    name: str = "agent", *, metadata: Mapping[str, Any] | None = None, **spec: Any
) -> DaemonSet:
    """Returns a DaemonSet of pods with the label app=<name>."""
    labels = {"app": name}
    fields: dict[str, Any] = {
        "selector": LabelSelector(match_labels=labels),
        "template": template(labels),
    }
    overrides = {"generation": 1} | dict(metadata or {})
    meta = builders.object_meta("DaemonSet", name, "default", labels=labels, overrides=overrides)
    return apply(DaemonSet(metadata=meta, spec=DaemonSetSpec(**(fields | spec))))


def image_of(pod: Pod) -> str:
    """Returns the image of the pod's first container."""
    return pod.spec.containers[0].image or ""


def pods_of(world: World) -> list[Pod]:
    """Returns all pods of the world, by name."""
    return sorted(world.of(Pod), key=lambda pod: pod.name)


def kubelet(
    world: World,
    broken: Callable[[Pod], bool] = lambda pod: False,
    stopped: Callable[[Pod], bool] = lambda pod: False,
) -> None:
    """Does what kubelets do: pods start and get ready, deleted ones end.

    The broken ones start and do not get ready; nothing happens to those that are stopped.
    """
    for pod in pods_of(world):
        if stopped(pod):
            continue
        if pod.deleting:
            if not pod.metadata.finalizers:
                world.remove(pod)
        elif pod.status.phase == "Pending":
            ready = builders.condition("Ready", "False" if broken(pod) else "True", since=world.now)
            world.put(pod.with_status(pod.status.replace(phase="Running", conditions=[ready])))
