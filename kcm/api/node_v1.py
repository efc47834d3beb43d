"""node.k8s.io/v1: RuntimeClass.

Source: staging/src/k8s.io/api/node/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from kcm.api.core_v1.pods import Toleration
from kcm.apimachinery.base import Atomic, Model, StringMap
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apimachinery.quantity import ResourceList


class Overhead(Model):
    """The resources that a pod of a RuntimeClass takes besides those of its containers."""

    pod_fixed: ResourceList | None = None


class Scheduling(Model):
    """The nodes that support a RuntimeClass."""

    node_selector: Annotated[StringMap | None, Atomic()] = None
    tolerations: list[Toleration] | None = None


class RuntimeClass(KubeObject):
    """A class of container runtimes: the overhead of its pods, and the nodes that they run on."""

    api_version: str = "node.k8s.io/v1"
    kind: str = "RuntimeClass"
    handler: str = ""
    overhead: Overhead | None = None
    scheduling: Scheduling | None = None
