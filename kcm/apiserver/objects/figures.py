"""The metrics APIs: the usage of nodes and pods, custom and external metrics.

Source: metrics-server 0.7 and sigs.k8s.io/custom-metrics-apiserver (pkg/registry,
pkg/dynamicmapper), and staging/src/k8s.io/metrics, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kcm import errors
from kcm.api import scheme
from kcm.api.core_v1 import Pod
from kcm.api.metrics_v1beta1 import ContainerMetrics, NodeMetrics, PodMetrics
from kcm.api.scheme import Resource
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.apimachinery.times import format_time
from kcm.apiserver.cache.hub import Hub
from kcm.apiserver.cache.watch_cache import Entry
from kcm.apiserver.http.answers import Answer, ApiCall, json_answer
from kcm.apiserver.metrics_kinds import CUSTOM, EXTERNAL, NODES, OF_NAMESPACE, OPEN, PODS
from kcm.apiserver.objects import lists
from kcm.apiserver.objects.selection import ObjectSelection
from kcm.apiserver.refusals import MethodNotAllowed, PathNotFound
from kcm.apiserver.target import RequestTarget
from kcm.store.resource_metrics.answers import StoredMetrics, Value, not_found
from kcm.store.resource_metrics.usage import EXTERNAL as EXTERNAL_METRICS
from kcm.store.resource_metrics.usage import Measured

_EVERY = "*"  # as a name: all objects, narrowed by a label selector
_STORED = {NODES: scheme.by_name("nodes"), PODS: scheme.by_name("pods")}


class MetricsAnswers:
    """Answers from the stored metrics, and from the watch cache of the objects that they
    are about.
    """

    def __init__(self, hub: Hub, metrics: StoredMetrics) -> None:
        self._hub = hub
        self._metrics = metrics

    def answer(self, call: ApiCall) -> Answer:
        """Returns metrics in the form that the client asked for.

        Raises BadRequest, MethodNotAllowed, NotFound, PathNotFound and StoreUnavailable.
        """
        if call.method != "GET" or call.flag("watch"):
            raise MethodNotAllowed
        match call.target.resource.group:
            case group if group == CUSTOM:
                return self._custom(call)
            case group if group == EXTERNAL:
                return self._external(call)
        if call.target.subresource:
            raise PathNotFound
        return self._usage(call)

    # --- metrics.k8s.io

    def _usage(self, call: ApiCall) -> Answer:
        target = call.target
        objects = self._objects(
            RequestTarget(_STORED[target.resource], target.namespace, target.name), call
        )
        entries = [Entry.made(target.resource, usage) for usage in self._measure(target, objects)]
        if not target.name:
            return lists.items_answer(call, entries, {})
        if not entries:
            resource = target.resource
            raise errors.NotFound.of(f"{resource.plural}.{resource.group}", target.name)
        return lists.entry_answer(call, entries[0])

    def _measure(
        self, target: RequestTarget, objects: Sequence[KubeObject]
    ) -> Iterable[KubeObject]:
        if target.resource is NODES:
            nodes = self._metrics.nodes([node.name for node in objects])
            return [_of_node(obj, nodes[obj.name]) for obj in objects if obj.name in nodes]
        pods = self._metrics.pods([obj for obj in objects if isinstance(obj, Pod)])
        return [_of_pod(obj, pods[obj.key]) for obj in objects if obj.key in pods]

    def _objects(self, target: RequestTarget, call: ApiCall) -> list[KubeObject]:
        """Returns the objects that the metrics are about, from the watch cache."""
        selection = ObjectSelection.of(target, call.query)
        self._hub.cached(target.resource)
        entries = self._hub.cache(target.resource).entries(target.namespace)
        return [entry.obj for entry in entries if selection.matches(entry)]

    # --- custom.metrics.k8s.io

    def _custom(self, call: ApiCall) -> Answer:
        target = call.target
        name, metric, resource = target.name, target.subresource, target.resource.plural
        if resource == OF_NAMESPACE:
            name, metric, resource = target.namespace, target.name, "namespaces"
        if not name or not metric:
            raise PathNotFound
        stored = scheme.by_name(resource)
        selector = Selector.parse(call.query.get("metricLabelSelector", ""))
        values = self._values(call, stored, name, metric, selector)
        if not values and name != _EVERY:
            raise not_found(metric, resource, name)
        shown: dict[str, Any] = {"name": metric}
        items = [
            {"describedObject": _reference(stored, key), "metric": shown, **_numbers(value)}
            for key, value in sorted(values.items())
        ]
        return _list(call, items)

    def _values(
        self, call: ApiCall, stored: Resource, name: str, metric: str, selector: Selector
    ) -> Mapping[str, Value]:
        namespace = call.target.namespace if stored.namespaced else ""
        only = "" if name == _EVERY else name
        if stored.name == "pods" or name == _EVERY:
            objects = self._objects(RequestTarget(stored, namespace, only), call)
            if stored.name == "pods":
                pods = [obj for obj in objects if isinstance(obj, Pod)]
                return self._metrics.of_pods(metric, pods, selector)
            keys = [obj.key for obj in objects]
        else:
            keys = [f"{namespace}/{name}" if namespace else name]
        return self._metrics.of_objects(stored.name, metric, keys, selector)

    # --- external.metrics.k8s.io

    def _external(self, call: ApiCall) -> Answer:
        target = call.target
        if target.name or not target.namespace:
            raise PathNotFound
        metric = target.resource.plural
        selector = Selector.parse(call.query.get("labelSelector", ""))
        items = [
            {"metricName": metric, "metricLabels": dict(labels), **_numbers(value)}
            for labels, value in self._metrics.external(target.namespace, metric, selector)
        ]
        return _list(call, items)

    # --- discovery

    def resources(self, group: str) -> Answer:
        """Returns the metrics that are published at present, as a group's resources."""
        entries = []
        for of, metric in self._metrics.list_metrics():
            if (of == EXTERNAL_METRICS) is (group == EXTERNAL) and (entry := _entry(of, metric)):
                entries.append(entry)
        return json_answer(
            {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": f"{group}/{OPEN[group]}",
                "resources": entries,
            }
        )


def _entry(of: str, metric: str) -> dict[str, Any] | None:
    if of == EXTERNAL_METRICS:
        name, kind, namespaced = metric, "ExternalMetricValueList", True
    else:
        try:
            namespaced = scheme.by_name(of).namespaced
        except errors.UnknownKind:
            return None
        name, kind = f"{of}/{metric}", "MetricValueList"
    return {"name": name, "singularName": "", "namespaced": namespaced, "kind": kind,
            "verbs": ["get"]}  # fmt: skip


def _of_node(node: KubeObject, measured: Measured) -> NodeMetrics:
    metadata, window = _metadata(node), _window(measured)
    usage = dict(measured.usage)
    return NodeMetrics(metadata=metadata, timestamp=measured.moment, window=window, usage=usage)


def _of_pod(pod: KubeObject, measured: Measured) -> PodMetrics:
    containers = [ContainerMetrics(name=n, usage=dict(u)) for n, u in measured.containers.items()]
    return PodMetrics(
        metadata=_metadata(pod),
        timestamp=measured.moment,
        window=_window(measured),
        containers=containers,
    )


def _metadata(obj: KubeObject) -> ObjectMeta:
    meta = obj.metadata
    now = datetime.now(UTC).replace(microsecond=0)
    return ObjectMeta(
        name=meta.name, namespace=meta.namespace, labels=meta.labels, creation_timestamp=now
    )


def _window(usage: Measured) -> str:
    return f"{usage.window:g}s"


def _reference(resource: Resource, key: str) -> dict[str, str]:
    namespace, _, name = key.rpartition("/")
    inside = {"namespace": namespace} if namespace else {}
    version = resource.api_version if resource.group else f"/{resource.version}"
    return {"kind": resource.kind, **inside, "name": name, "apiVersion": version}


def _numbers(value: Value) -> dict[str, Any]:
    window = {"windowSeconds": round(value.window)} if value.window else {}
    return {"timestamp": format_time(value.moment), **window, "value": str(value.value)}


def _list(call: ApiCall, items: Sequence[Mapping[str, Any]]) -> Answer:
    resource = call.target.resource
    return json_answer(
        {
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "metadata": {},
            "items": list(items),
        }
    )
