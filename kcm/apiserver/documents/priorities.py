"""The order of API groups and their versions in documents, and in what kubectl tries first.

Source: apiVersionPriorities in cmd/kube-apiserver/app/aggregator.go and
pkg/controlplane/apiserver/aggregator.go,
pkg/controlplane/controller/crdregistration/crdregistration_controller.go, and
SortedByGroupAndVersion in staging/src/k8s.io/kube-aggregator/pkg/apis/apiregistration/helpers.go,
Kubernetes 1.33.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from kcm.api.apiregistration_v1 import GROUP, name_of


class Priority(NamedTuple):
    """How far in front a group is, and a version inside of its group. Higher ones come first."""

    group: int
    version: int


class RankedVersion(NamedTuple):
    """A version of an API group with its priority."""

    group: str
    name: str
    priority: Priority


# The group itself, which no APIService names, is in front of all others.
_REGISTRATION = Priority(20001, 0)
CUSTOM = Priority(1000, 100)  # of custom kinds
_OTHER = Priority(100, 100)  # of groups that are served without an APIService
BUILT_IN: dict[tuple[str, str], Priority] = {
    ("", "v1"): Priority(18000, 1),
    ("apps", "v1"): Priority(17800, 15),
    ("events.k8s.io", "v1"): Priority(17750, 15),
    ("authentication.k8s.io", "v1"): Priority(17700, 15),
    ("authorization.k8s.io", "v1"): Priority(17600, 15),
    ("autoscaling", "v1"): Priority(17500, 15),
    ("autoscaling", "v2"): Priority(17500, 30),
    ("batch", "v1"): Priority(17400, 15),
    ("certificates.k8s.io", "v1"): Priority(17300, 15),
    ("certificates.k8s.io", "v1beta1"): Priority(17300, 9),
    ("networking.k8s.io", "v1"): Priority(17200, 15),
    ("policy", "v1"): Priority(17100, 15),
    ("rbac.authorization.k8s.io", "v1"): Priority(17000, 15),
    ("storage.k8s.io", "v1"): Priority(16800, 15),
    ("apiextensions.k8s.io", "v1"): Priority(16700, 15),
    ("admissionregistration.k8s.io", "v1"): Priority(16700, 15),
    ("scheduling.k8s.io", "v1"): Priority(16600, 15),
    ("coordination.k8s.io", "v1"): Priority(16500, 15),
    ("node.k8s.io", "v1"): Priority(16300, 15),
    ("resource.k8s.io", "v1"): Priority(16200, 21),
    ("discovery.k8s.io", "v1"): Priority(16200, 15),
    ("flowcontrol.apiserver.k8s.io", "v1"): Priority(16100, 21),
    ("storagemigration.k8s.io", "v1beta1"): Priority(15800, 9),
}


def priority_of(group: str, version: str, *, custom: bool = False) -> Priority:
    """Returns the priority of a version that this server serves itself."""
    if group == GROUP:
        return _REGISTRATION
    return BUILT_IN.get((group, version)) or (CUSTOM if custom else _OTHER)


_KUBE_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


def version_key(version: str) -> tuple[int, int, int, str]:
    """Returns the sort key of versions: v2, v1, v1beta1, v1alpha1, then others by name."""
    match = _KUBE_VERSION.fullmatch(version)
    if match is None:
        return 3, 0, 0, version
    stage = {None: 0, "beta": 1, "alpha": 2}[match[2]]
    return stage, -int(match[1]), -int(match[3] or 0), ""


def sort_by_group_and_version(versions: Iterable[RankedVersion]) -> list[list[RankedVersion]]:
    """Returns the versions by groups, those with the highest priority first."""
    groups: dict[str, list[RankedVersion]] = {}
    for version in sorted(versions, key=_group_key):
        groups.setdefault(version.group, []).append(version)
    return [sorted(members, key=_version_key) for members in groups.values()]


def _group_key(version: RankedVersion) -> tuple[int, str]:
    return -version.priority.group, name_of(version.group, version.name)


def _version_key(version: RankedVersion) -> tuple[int, tuple[int, int, int, str]]:
    return -version.priority.version, version_key(version.name)
