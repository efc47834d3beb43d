"""core/v1: Event and ObjectReference.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from kcm.apimachinery.base import Int32, Model
from kcm.apimachinery.meta_v1 import KubeObject, MicroTime, Time


class ObjectReference(Model):
    """Identifies an object, or a part of it."""

    kubernetes_atomic: ClassVar[bool] = True

    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None
    api_version: str | None = None
    resource_version: str | None = None
    field_path: str | None = None


class EventSource(Model):
    """The component that reported an Event, and its host."""

    component: str | None = None
    host: str | None = None


class EventSeries(Model):
    """How often an Event was repeated, and when it last was."""

    count: Int32 | None = None
    last_observed_time: MicroTime | None = None


class Event(KubeObject):
    """Reports what happened to an object, for people. Events are kept for a limited time."""

    api_version: str = "v1"
    kind: str = "Event"
    involved_object: ObjectReference = Field(default_factory=ObjectReference)
    reason: str | None = None
    message: str | None = None
    source: EventSource = Field(default_factory=EventSource)
    first_timestamp: Time | None = None
    last_timestamp: Time | None = None
    count: Int32 | None = None
    type: str | None = None
    event_time: MicroTime | None = None
    series: EventSeries | None = None
    action: str | None = None
    related: ObjectReference | None = None
    reporting_component: str = ""
    reporting_instance: str = ""
