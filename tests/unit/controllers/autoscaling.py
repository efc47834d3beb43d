"""Builders for the autoscaler's tests: pods, autoscalers, metric specs, and a fake metrics
client.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from kcm import errors
from kcm.api import codec
from kcm.api.autoscaling_v2 import HorizontalPodAutoscaler
from kcm.api.core_v1 import Pod, ResourceRequirements
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.quantity import Quantity
from kcm.kinds import defaults
from kcm.store.resource_metrics.answers import Value
from kcm.store.resource_metrics.usage import Measured, total
from kcm.testing import builders
from kcm.testing.views import NOW

LABELS = {"app": "web"}
MINUTE = timedelta(minutes=1)


def pod(name: str, *, cpu: str | None = "1", ready: bool = True, **changes: Any) -> Pod:
    """Returns a pod that started an hour ago and, by default, has been ready since then."""
    requests = {"cpu": Quantity(cpu)} if cpu is not None else {}
    container = builders.container("app", resources=ResourceRequirements(requests=requests))
    since = changes.pop("since", builders.START)
    started = changes.pop("started", builders.START)
    conditions = [builders.condition("Ready", "True" if ready else "False", since=since)]
    given: dict[str, Any] = {
        "phase": "Running",
        "labels": LABELS,
        "containers": [container],
        "status": {"conditions": conditions, "start_time": started},
    }
    return builders.pod(name, **(given | changes))


@dataclass
class FakeMetrics:
    """A metrics client that answers from its fields; it raises `failure` in every call, if that is
    set.
    """

    cpu: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)  # by name
    memory: Mapping[str, str] = field(default_factory=dict)
    custom: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # metric, name
    objects: Mapping[str, str] = field(default_factory=dict)  # by resource, key, metric
    queues: Mapping[str, Sequence[tuple[Mapping[str, str], str]]] = field(default_factory=dict)
    failure: errors.KcmError | None = None
    moment: datetime = NOW
    window: float = 10.0

    def pods(self, pods: Iterable[Pod]) -> Mapping[str, Measured]:
        self._may_fail()
        metrics_by_pod = {}
        for one in pods:
            containers: dict[str, dict[str, Quantity]] = {}
            cpu = self.cpu.get(one.name, {})
            for name, amount in ({"app": cpu} if isinstance(cpu, str) else cpu).items():
                containers.setdefault(name, {})["cpu"] = Quantity(amount)
            if one.name in self.memory:
                containers.setdefault("app", {})["memory"] = Quantity(self.memory[one.name])
            if containers:
                used = total(containers.values())
                metrics_by_pod[one.key] = Measured(self.moment, self.window, used, containers)
        return metrics_by_pod

    def of_pods(self, metric: str, pods: Sequence[Pod], selector: Selector) -> Mapping[str, Value]:
        self._may_fail()
        known = self.custom.get(metric, {})
        return {one.key: self._value(known[one.name]) for one in pods if one.name in known}

    def of_objects(
        self, resource: str, metric: str, keys: Iterable[str], selector: Selector
    ) -> Mapping[str, Value]:
        self._may_fail()
        known = {key: self.objects.get(f"{resource} {key} {metric}") for key in keys}
        return {key: self._value(text) for key, text in known.items() if text is not None}

    def external(
        self, namespace: str, metric: str, selector: Selector
    ) -> Sequence[tuple[Mapping[str, str], Value]]:
        self._may_fail()
        series = self.queues.get(metric, ())
        return [(labels, self._value(text)) for labels, text in series if selector.matches(labels)]

    def _value(self, text: str) -> Value:
        return Value(Quantity(text), self.moment)

    def _may_fail(self) -> None:
        if self.failure is not None:
            raise self.failure


def autoscaler(*metrics: Mapping[str, Any], **spec: Any) -> HorizontalPodAutoscaler:
    """Returns an autoscaler of the Deployment `web`, from 1 to 10 replicas."""
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    given = {"scaleTargetRef": reference, "maxReplicas": 10, "metrics": list(metrics)}
    body = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default", "uid": "uid-of-web"},
        "spec": given | spec,
    }
    obj = defaults.apply(codec.decode(body, BUILT_IN))
    assert isinstance(obj, HorizontalPodAutoscaler)
    return obj


def resource(name: str = "cpu", **target: Any) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def cpu(percent: int) -> dict[str, Any]:
    return resource(type="Utilization", averageUtilization=percent)


def of_pods(metric: str, average: str) -> dict[str, Any]:
    target = {"type": "AverageValue", "averageValue": average}
    return {"type": "Pods", "pods": {"metric": {"name": metric}, "target": target}}


def of_service(metric: str, **target: Any) -> dict[str, Any]:
    about = {"apiVersion": "v1", "kind": "Service", "name": "web"}
    return {
        "type": "Object",
        "object": {"describedObject": about, "metric": {"name": metric}, "target": target},
    }


def external(metric: str, selector: Any = None, **target: Any) -> dict[str, Any]:
    identifier = {"name": metric} | ({"selector": selector} if selector else {})
    return {"type": "External", "external": {"metric": identifier, "target": target}}
