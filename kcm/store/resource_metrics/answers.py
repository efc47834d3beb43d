"""Computes the responses of the metrics APIs from measurements
(`kcm.store.resource_metrics.usage`).

If several series of an object's metric match, their sum counts. A metric that a node reports for a
pod has no labels; one that was published for the pod takes precedence.

Source: the responses of metrics-server 0.7 and of sigs.k8s.io/custom-metrics-apiserver, and the
requests of pkg/controller/podautoscaler/metrics/client.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.quantity import Quantity
from kcm.clock import Clock, RealClock
from kcm.store.resource_metrics.usage import EXTERNAL, Measured, Published, UsageBoard

PODS = "pods"
EVERYTHING = Selector()


@dataclass(frozen=True)
class Value:
    """The value of a metric, measured at `moment`."""

    value: Quantity
    moment: datetime
    window: float = 0.0  # the seconds over which it was measured, 0 if they are not known


class StoredMetrics:
    """The metrics of one cluster's pods, nodes and other objects."""

    def __init__(self, board: UsageBoard, clock: Clock | None = None) -> None:
        self._board = board
        self._clock = clock or RealClock()

    def pods(self, pods: Iterable[Pod]) -> Mapping[str, Measured]:
        """Returns the usage by pod key, of those pods that a node has reported.

        Raises: StoreUnavailable.
        """
        return self._board.pods((pod.spec.node_name or "", pod.key) for pod in pods)

    def nodes(self, names: Sequence[str]) -> Mapping[str, Measured]:
        """Returns the usage by node name, of those nodes that have reported any.

        Raises: StoreUnavailable.
        """
        return self._board.nodes(names)

    def of_pods(
        self, metric: str, pods: Sequence[Pod], selector: Selector = EVERYTHING
    ) -> Mapping[str, Value]:
        """Returns the values of a metric by pod key, of those pods that have it. Raises:
        StoreUnavailable.
        """
        values = {}
        if selector.matches({}):
            for key, measured in self.pods(pods).items():
                value = measured.metrics.get(metric)
                if value is not None:
                    values[key] = Value(value, measured.moment, measured.window)
        wanted = {pod.key for pod in pods}
        series = self._board.read_values(PODS, metric)
        return values | self._sums(series, wanted, selector)

    def of_objects(
        self, resource: str, metric: str, keys: Iterable[str], selector: Selector = EVERYTHING
    ) -> Mapping[str, Value]:
        """Returns the values of a metric by object key, of those objects that have it.

        `resource` has the form of `deployments.apps`. Raises: StoreUnavailable.
        """
        return self._sums(self._board.read_values(resource, metric), set(keys), selector)

    def external(
        self, namespace: str, metric: str, selector: Selector = EVERYTHING
    ) -> Sequence[tuple[Mapping[str, str], Value]]:
        """Returns all series of an external metric: labels and value. Raises: StoreUnavailable."""
        now = self._clock.now()
        return [
            (published.labels, Value(published.value, now))
            for published in self._board.read_values(EXTERNAL, metric)
            if published.key == namespace and selector.matches(published.labels)
        ]

    def list_metrics(self) -> Sequence[tuple[str, str]]:
        """Returns the resource and name of every published metric.

        Raises: StoreUnavailable.
        """
        return self._board.list_metrics()

    def _sums(
        self, series: Iterable[Published], wanted: set[str], selector: Selector
    ) -> dict[str, Value]:
        now = self._clock.now()
        sums: dict[str, Value] = {}
        for published in series:
            key, value = published.key, published.value
            if key in wanted and selector.matches(published.labels):
                before = sums.get(key)
                sums[key] = Value(value if before is None else before.value + value, now)
        return sums


def not_found(metric: str, resource: str, name: str) -> errors.NotFound:
    """Returns the error for an object that does not have a metric."""
    return errors.NotFound(
        f"the server could not find the metric {metric} for {resource} {name}",
        resource=resource,
        name=name,
    )
