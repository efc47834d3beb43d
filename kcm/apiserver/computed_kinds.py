"""Kinds of the API that are computed for requests, and never stored.

The usage of nodes and pods has fixed kinds. Custom and external metrics come and go, so their
resources are built when they are requested.

Source: pkg/registry/authentication, pkg/registry/authorization, LegacyBindingREST in
pkg/registry/core/pod/storage/storage.go and pkg/registry/core/componentstatus, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from kcm import errors
from kcm.api import authentication_v1 as authentication
from kcm.api import authorization_v1 as authorization
from kcm.api.core_v1.nodes import ComponentStatus
from kcm.api.core_v1.pods import Binding
from kcm.api.metrics_v1beta1 import NodeMetrics, PodMetrics
from kcm.api.scheme import Kinds, Resource, kind
from kcm.apimachinery.meta_v1 import KubeObject

_CREATED, _READ = ("create",), ("get", "list")  # verbs
CUSTOM, EXTERNAL = "custom.metrics.k8s.io", "external.metrics.k8s.io"
OPEN: Mapping[str, str] = {CUSTOM: "v1beta2", EXTERNAL: "v1beta1"}  # from the group to the version
OF_NAMESPACE = "metrics"  # stands for the namespace itself in a path
COMPONENT_DEPRECATION = "v1 ComponentStatus is deprecated in v1.19+"

BINDING: Resource = kind(Binding, "bindings", has_status=False)
COMPONENT_STATUS: Resource = kind(
    ComponentStatus, "componentstatuses", cluster=True, short="cs", has_status=False
)
NODE_METRICS: Resource = kind(NodeMetrics, "nodes", cluster=True, has_status=False)
POD_METRICS: Resource = kind(PodMetrics, "pods", has_status=False)
METRICS: tuple[Resource, ...] = (NODE_METRICS, POD_METRICS)
REVIEWS: tuple[Resource, ...] = (
    kind(authentication.SelfSubjectReview, "selfsubjectreviews", cluster=True, has_status=False),
    kind(authentication.TokenReview, "tokenreviews", cluster=True, has_status=False),
    kind(authorization.LocalSubjectAccessReview, "localsubjectaccessreviews", has_status=False),
    kind(
        authorization.SelfSubjectAccessReview, "selfsubjectaccessreviews", cluster=True,
        has_status=False,
    ),
    kind(
        authorization.SelfSubjectRulesReview, "selfsubjectrulesreviews", cluster=True,
        has_status=False,
    ),
    kind(authorization.SubjectAccessReview, "subjectaccessreviews", cluster=True, has_status=False),
)  # fmt: skip
LISTED: tuple[Resource, ...] = (*REVIEWS, *METRICS, COMPONENT_STATUS, BINDING)  # in discovery
# Served, but not in discovery: kubectl 1.27 requests it anyway.
_UNLISTED: Resource = kind(
    authentication.SelfSubjectReviewV1Beta1, "selfsubjectreviews", cluster=True, has_status=False
)

_BY_PATH = {(one.group, one.version, one.plural): one for one in (*LISTED, _UNLISTED)}
_REVIEWS = frozenset((*REVIEWS, _UNLISTED))
_ALL = frozenset(_BY_PATH.values())
_OPEN_KINDS = {CUSTOM: "MetricValueList", EXTERNAL: "ExternalMetricValueList"}


def is_computed(resource: Resource) -> bool:
    """Reports whether objects of the kind are computed for requests."""
    return resource in _ALL or resource.group in OPEN


def is_review(resource: Resource) -> bool:
    """Reports whether the kind is a review, which is created to ask for something."""
    return resource in _REVIEWS


def is_metric(resource: Resource) -> bool:
    """Reports whether the kind is one of the metrics APIs."""
    return resource in METRICS or resource.group in OPEN


def is_open(group: str, version: str) -> bool:
    """Reports whether the group and version has custom or external metrics."""
    return OPEN.get(group) == version


def list_verbs(resource: Resource) -> tuple[str, ...]:
    """Returns the verbs of a kind whose objects are computed."""
    return _CREATED if is_review(resource) or resource is BINDING else _READ


def find(group: str, version: str, plural: str, kinds: Kinds) -> Resource | None:
    """Returns the resource at this path, None if objects there are not computed. `kinds` may have
    custom metrics.
    """
    if (resource := _BY_PATH.get((group, version, plural))) is not None:
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
