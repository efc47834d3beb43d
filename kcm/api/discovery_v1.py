"""discovery.k8s.io/v1: EndpointSlice.

Source: staging/src/k8s.io/api/discovery/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from kcm.api.core_v1.events import ObjectReference
from kcm.apimachinery.base import Bool, Int32, MergeSet, Model, StringMap
from kcm.apimachinery.meta_v1 import KubeObject


class EndpointConditions(Model):
    """The conditions that say whether an endpoint accepts traffic. An absent `ready` is true."""

    ready: Bool | None = None
    serving: Bool | None = None
    terminating: Bool | None = None


class ForZone(Model):
    """A zone whose clients should use the endpoint."""

    name: str = ""


class ForNode(Model):
    """A node whose clients should use the endpoint."""

    name: str = ""


class EndpointHints(Model):
    """The zones and nodes whose clients should use an endpoint."""

    for_zones: list[ForZone] | None = None
    for_nodes: list[ForNode] | None = None


class Endpoint(Model):
    """One backend of a Service, such as a pod."""

    addresses: Annotated[list[str], MergeSet(patches=False)] = Field(default_factory=list)
    conditions: EndpointConditions = Field(default_factory=EndpointConditions)
    hostname: str | None = None
    target_ref: ObjectReference | None = None
    deprecated_topology: StringMap | None = None
    node_name: str | None = None
    zone: str | None = None
    hints: EndpointHints | None = None


class EndpointPort(Model):
    """A port of all endpoints of a slice. An absent number means every port."""

    kubernetes_atomic: ClassVar[bool] = True

    name: str | None = None
    protocol: str | None = None
    port: Int32 | None = None
    app_protocol: str | None = None


class EndpointSlice(KubeObject):
    """Some of the endpoints of a Service; those of one Service may be in several slices."""

    api_version: str = "discovery.k8s.io/v1"
    kind: str = "EndpointSlice"
    address_type: str = ""
    endpoints: list[Endpoint] = Field(default_factory=list)
    ports: list[EndpointPort] | None = None
