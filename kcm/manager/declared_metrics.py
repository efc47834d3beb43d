"""The metrics that controllers declare, on `/metrics`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

from kcm.reconcile.counters import SUM, Counter, Histogram


def families_of_declared(
    declared: Iterable[Counter | Histogram], counts: Mapping[str, int]
) -> Iterable[Metric]:
    """Returns a family for each declared metric. `counts` are the sums of `reconcile.counters`."""
    sums: dict[str, dict[tuple[str, ...], int]] = {}
    for name, count in sorted(counts.items()):
        family, *values = name.split("|")
        sums.setdefault(family, {})[tuple(values)] = count
    for metric in declared:
        added = sums.get(metric.name, {})
        if isinstance(metric, Counter):
            yield _counter(metric, added)
        else:
            yield _histogram(metric, added)


def _counter(metric: Counter, added: Mapping[tuple[str, ...], int]) -> Metric:
    family = CounterMetricFamily(metric.name, metric.text, labels=metric.labels)
    for values, count in added.items():
        if len(values) == len(metric.labels):
            family.add_metric(values, count)
    return family


def _histogram(metric: Histogram, added: Mapping[tuple[str, ...], int]) -> Metric:
    family = HistogramMetricFamily(metric.name, metric.text, labels=metric.labels)
    parts: dict[tuple[str, ...], dict[str, int]] = {}
    for values, count in added.items():
        if len(values) == len(metric.labels) + 1:
            parts.setdefault(values[:-1], {})[values[-1]] = count
    for values, part in parts.items():
        running, pairs = 0, []
        for number, bound in enumerate((*map(repr, map(float, metric.buckets)), "+Inf")):
            running += part.get(str(number), 0)
            pairs.append((bound, float(running)))
        family.add_metric(values, pairs, part.get(SUM, 0) / 1e6)
    return family
