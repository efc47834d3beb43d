"""The metrics APIs: the usage of nodes and pods, custom and external metrics.

Source: metrics-server 0.7 and sigs.k8s.io/custom-metrics-apiserver (pkg/registry,
pkg/dynamicmapper), and staging/src/k8s.io/metrics, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kcm import errors
from kcm.api.core_v1 import Node, Pod
from kcm.api.metrics_v1beta1 import ContainerMetrics, NodeMetrics, PodMetrics
from kcm.api.scheme import Resource
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta, format_time
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.cache.entries import Entry
from kcm.apiserver.computed_kinds import (
    CUSTOM,
    EXTERNAL,
    NODE_METRICS,
    OF_NAMESPACE,
    OPEN,
    POD_METRICS,
)
from kcm.apiserver.http.responses import ApiRequest, Response, json_response
from kcm.apiserver.http_errors import MethodNotAllowed, PathNotFound
from kcm.apiserver.objects import lists
from kcm.apiserver.objects.selection import ObjectSelection
from kcm.apiserver.request_info import RequestInfo
from kcm.store.resource_metrics.answers import StoredMetrics, Value, not_found
from kcm.store.resource_metrics.usage import EXTERNAL as EXTERNAL_METRICS
from kcm.store.resource_metrics.usage import Measured

_EVERY = "*"  # as a name: all objects that the label selector matches
_STORED = {NODE_METRICS: Node.resource, POD_METRICS: Pod.resource}


class MetricsApis:
    """Serves the metrics APIs from the metrics that nodes report and from the watch caches."""

    def __init__(self, cacher: Cacher, metrics: StoredMetrics) -> None:
        self._cacher = cacher
        self._metrics = metrics

    def respond(self, request: ApiRequest) -> Response:
        """Returns a response with metrics, in the form that the client asked for.

        Raises BadRequest, MethodNotAllowed, NotFound, PathNotFound and StoreUnavailable.
        """
        if request.method != "GET" or request.flag("watch"):
            raise MethodNotAllowed
        match request.info.resource.group:
            case group if group == CUSTOM:
                return self._custom(request)
            case group if group == EXTERNAL:
                return self._external(request)
        if request.info.subresource:
            raise PathNotFound
        return self._usage(request)

    # --- metrics.k8s.io

    def _usage(self, request: ApiRequest) -> Response:
        info = request.info
        objects = self._objects(
            RequestInfo(_STORED[info.resource], info.namespace, info.name), request
        )
        entries = [Entry.build(info.resource, usage) for usage in self._measure(info, objects)]
        if not info.name:
            return lists.items_response(request, entries, {})
        if not entries:
            resource = info.resource
            raise errors.NotFound.of(f"{resource.plural}.{resource.group}", info.name)
        return lists.entry_response(request, entries[0])

    def _measure(self, info: RequestInfo, objects: Sequence[KubeObject]) -> Iterable[KubeObject]:
        if info.resource is NODE_METRICS:
            nodes = self._metrics.nodes([node.name for node in objects])
            return [_of_node(obj, nodes[obj.name]) for obj in objects if obj.name in nodes]
        pods = self._metrics.pods([obj for obj in objects if isinstance(obj, Pod)])
        return [_of_pod(obj, pods[obj.key]) for obj in objects if obj.key in pods]

    def _objects(self, info: RequestInfo, request: ApiRequest) -> list[KubeObject]:
        """Returns the selected objects that the metrics describe, from the watch cache."""
        selection = ObjectSelection.of(info, request.query)
        self._cacher.wait_until_filled(info.resource)
        entries = self._cacher.cache(info.resource).entries(info.namespace)
        return [entry.obj for entry in entries if selection.matches(entry)]

    # --- custom.metrics.k8s.io

    def _custom(self, request: ApiRequest) -> Response:
        info = request.info
        name, metric, resource = info.name, info.subresource, info.resource.plural
        if resource == OF_NAMESPACE:
            name, metric, resource = info.namespace, info.name, "namespaces"
        if not name or not metric:
            raise PathNotFound
        stored = self._cacher.scheme.by_name(resource)
        selector = Selector.parse(request.query.get("metricLabelSelector", ""))
        values = self._values(request, stored, name, metric, selector)
        if not values and name != _EVERY:
            raise not_found(metric, resource, name)
        shown: dict[str, Any] = {"name": metric}
        items = [
            {"describedObject": _reference(stored, key), "metric": shown, **_numbers(value)}
            for key, value in sorted(values.items())
        ]
        return _list(request, items)

    def _values(
        self, request: ApiRequest, stored: Resource, name: str, metric: str, selector: Selector
    ) -> Mapping[str, Value]:
        namespace = request.info.namespace if stored.namespaced else ""
        only = "" if name == _EVERY else name
        if stored.name == "pods" or name == _EVERY:
            objects = self._objects(RequestInfo(stored, namespace, only), request)
            if stored.name == "pods":
                pods = [obj for obj in objects if isinstance(obj, Pod)]
                return self._metrics.of_pods(metric, pods, selector)
            keys = [obj.key for obj in objects]
        else:
            keys = [f"{namespace}/{name}" if namespace else name]
        return self._metrics.of_objects(stored.name, metric, keys, selector)

    # --- external.metrics.k8s.io

    def _external(self, request: ApiRequest) -> Response:
        info = request.info
        if info.name or not info.namespace:
            raise PathNotFound
        metric = info.resource.plural
        selector = Selector.parse(request.query.get("labelSelector", ""))
        items = [
            {"metricName": metric, "metricLabels": dict(labels), **_numbers(value)}
            for labels, value in self._metrics.external(info.namespace, metric, selector)
        ]
        return _list(request, items)

    # --- discovery

    def resources(self, group: str) -> Response:
        """Returns the discovery document of a group: the metrics that are published at present."""
        entries = []
        for of, metric in self._metrics.list_metrics():
            if (of == EXTERNAL_METRICS) is (group == EXTERNAL) and (
                entry := self._entry(of, metric)
            ):
                entries.append(entry)
        return json_response(
            {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": f"{group}/{OPEN[group]}",
                "resources": entries,
            }
        )

    def _entry(self, of: str, metric: str) -> dict[str, Any] | None:
        if of == EXTERNAL_METRICS:
            name, kind, namespaced = metric, "ExternalMetricValueList", True
        else:
            try:
                namespaced = self._cacher.scheme.by_name(of).namespaced
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


def _list(request: ApiRequest, items: Sequence[Mapping[str, Any]]) -> Response:
    resource = request.info.resource
    return json_response(
        {
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "metadata": {},
            "items": list(items),
        }
    )
