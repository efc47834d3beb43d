"""The kinds of the metrics APIs, which are computed for requests and never stored.

The usage of nodes and pods has fixed kinds. Custom and external metrics come and go, so their
resources are built when they are requested.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from kcm import errors
from kcm.api.metrics_v1beta1 import NodeMetrics, PodMetrics
from kcm.api.scheme import Kinds, Resource, kind
from kcm.apimachinery.meta_v1 import KubeObject

VERBS = ("get", "list")
CUSTOM, EXTERNAL = "custom.metrics.k8s.io", "external.metrics.k8s.io"
OPEN: Mapping[str, str] = {CUSTOM: "v1beta2", EXTERNAL: "v1beta1"}  # from the group to the version
OF_NAMESPACE = "metrics"  # stands for the namespace itself in a path

NODES: Resource = kind(NodeMetrics, "nodes", cluster=True, has_status=False)
PODS: Resource = kind(PodMetrics, "pods", has_status=False)
RESOURCES: tuple[Resource, ...] = (NODES, PODS)

_OPEN_KINDS = {CUSTOM: "MetricValueList", EXTERNAL: "ExternalMetricValueList"}


def is_metric(resource: Resource) -> bool:
    """Reports whether the kind is one of the metrics APIs."""
    return resource in RESOURCES or resource.group in OPEN


def is_open(group: str, version: str) -> bool:
    """Reports whether the group and version has custom or external metrics."""
    return OPEN.get(group) == version


def find(group: str, version: str, plural: str, kinds: Kinds) -> Resource | None:
    """Returns the resource of a metrics API at this path, or None. `kinds` may have custom
    metrics.
    """
    for resource in RESOURCES:
        if (resource.plural, resource.group, resource.version) == (plural, group, version):
            return resource
    if not is_open(group, version):
        return None
    namespaced = group == EXTERNAL or _is_namespaced(plural, kinds)
    return None if namespaced is None else _open_kind(group, plural, namespaced=namespaced)


def _is_namespaced(name: str, kinds: Kinds) -> bool | None:
    """Reports whether the resource that has custom metrics is namespaced.

    Returns None if there is no such resource.
    """
    if name == OF_NAMESPACE:
        return True
    try:
        return kinds.by_name(name).namespaced
    except errors.UnknownKind:
        return None


@lru_cache(maxsize=256)
def _open_kind(group: str, plural: str, *, namespaced: bool) -> Resource:
    return Resource(
        group=group,
        version=OPEN[group],
        kind=_OPEN_KINDS[group],
        plural=plural,
        singular="",
        namespaced=namespaced,
        model=KubeObject,
        has_status=False,
    )
