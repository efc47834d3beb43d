"""Reads metrics of a cluster behind an API server through its metrics APIs.

Source: pkg/controller/podautoscaler/metrics/client.go and staging/src/k8s.io/metrics/pkg/client,
Kubernetes 1.33.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.apimachinery.durations import parse_fine_seconds
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import parse_time
from kcm.apimachinery.quantity import Quantity
from kcm.store.remote.rest import RestClient
from kcm.store.resource_metrics.answers import EVERYTHING, Value
from kcm.store.resource_metrics.usage import Measured, total

_RESOURCES = "/apis/metrics.k8s.io/v1beta1"
_CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2"
_EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"


class RemoteMetrics:
    """The metrics of a remote cluster. Every method raises ApiError and StoreUnavailable."""

    def __init__(self, client: RestClient) -> None:
        self._client = client

    def pods(self, pods: Iterable[Pod]) -> Mapping[str, Measured]:
        """Returns the resource usage by pod key, of those pods for which it is known."""
        wanted = {pod.key: pod.namespace for pod in pods}
        usage: dict[str, Measured] = {}
        for namespace in sorted(set(wanted.values())):
            for item in self._items(f"{_RESOURCES}/namespaces/{namespace}/pods"):
                key = f"{namespace}/{item['metadata']['name']}"
                if key in wanted:
                    usage[key] = _parse_samples(item)
        return usage

    def of_pods(
        self, metric: str, pods: Sequence[Pod], selector: Selector = EVERYTHING
    ) -> Mapping[str, Value]:
        """Returns the values of a custom metric by pod key, of those pods that have it."""
        wanted = {pod.key for pod in pods}
        values: dict[str, Value] = {}
        for namespace in sorted({pod.namespace for pod in pods}):
            path = f"{_CUSTOM}/namespaces/{namespace}/pods/*/{metric}"
            for item in self._items(path, metricLabelSelector=str(selector)):
                key = f"{namespace}/{item['describedObject']['name']}"
                if key in wanted:
                    values[key] = _value(item)
        return values

    def of_objects(
        self, resource: str, metric: str, keys: Iterable[str], selector: Selector = EVERYTHING
    ) -> Mapping[str, Value]:
        """Returns the values of a custom metric by object key, of those objects that have it."""
        values: dict[str, Value] = {}
        for key in keys:
            path = _path_of(resource, key, metric)
            for item in self._items(path, metricLabelSelector=str(selector)):
                values[key] = _value(item)
        return values

    def external(
        self, namespace: str, metric: str, selector: Selector = EVERYTHING
    ) -> Sequence[tuple[Mapping[str, str], Value]]:
        """Returns all series of an external metric, each with its labels and its value."""
        path = f"{_EXTERNAL}/namespaces/{namespace}/{metric}"
        items = self._items(path, labelSelector=str(selector))
        return [(item.get("metricLabels") or {}, _value(item)) for item in items]

    def _items(self, path: str, **params: str) -> list[dict[str, Any]]:
        """Returns the items of a list, none if the server responds with 404."""
        given = {name: value for name, value in params.items() if value}
        try:
            body = json.loads(self._client.request("GET", path, params=given))
        except errors.NotFound:
            return []
        items: list[dict[str, Any]] = body.get("items") or []
        return items


def _path_of(resource: str, key: str, metric: str) -> str:
    namespace, slash, name = key.rpartition("/")
    if resource == "namespaces":
        return f"{_CUSTOM}/namespaces/{name}/metrics/{metric}"
    inside = f"/namespaces/{namespace}" if slash else ""
    return f"{_CUSTOM}{inside}/{resource}/{name}/{metric}"


def _parse_samples(item: Mapping[str, Any]) -> Measured:
    containers = {
        container["name"]: {name: Quantity(text) for name, text in container["usage"].items()}
        for container in item.get("containers") or ()
    }
    moment, window = _moment(item), _seconds(item.get("window"))
    return Measured(moment, window, total(containers.values()), containers)


def _value(item: Mapping[str, Any]) -> Value:
    window = float(item.get("windowSeconds") or item.get("window") or 0)
    return Value(Quantity(str(item["value"])), _moment(item), window)


def _moment(item: Mapping[str, Any]) -> datetime:
    text = item.get("timestamp")
    return parse_time(text) if text else datetime.now(UTC)


def _seconds(text: str | None) -> float:
    """Returns the seconds of a duration in Go's format, such as `1m30s`, 0 if it is missing or
    invalid.
    """
    try:
        return parse_fine_seconds(text or "0")
    except ValueError:
        return 0.0
