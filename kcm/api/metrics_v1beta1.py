"""metrics.k8s.io/v1beta1: the CPU and memory that nodes and pods use. Never stored.

Source: staging/src/k8s.io/metrics/pkg/apis/metrics/v1beta1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from pydantic import Field

from kcm.apimachinery.base import Model
from kcm.apimachinery.meta_v1 import KubeObject, Time
from kcm.apimachinery.quantity import ResourceList

API_VERSION = "metrics.k8s.io/v1beta1"


class NodeMetrics(KubeObject):
    """The CPU and memory that a node used in the window that ends at the timestamp."""

    api_version: str = API_VERSION
    kind: str = "NodeMetrics"
    timestamp: Time | None = None
    window: str = "0s"
    usage: ResourceList = Field(default_factory=dict)


class ContainerMetrics(Model):
    """The CPU and memory that a container used."""

    name: str
    usage: ResourceList


class PodMetrics(KubeObject):
    """The CPU and memory that a pod's containers used in the window that ends at the timestamp."""

    api_version: str = API_VERSION
    kind: str = "PodMetrics"
    timestamp: Time | None = None
    window: str = "0s"
    containers: list[ContainerMetrics] = Field(default_factory=list)
