"""events.k8s.io/v1: Event, another served version of core v1's.

Source: staging/src/k8s.io/api/events/v1/types.go and pkg/apis/events/v1/conversion.go,
Kubernetes 1.33.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from kcm.api.core_v1 import Event as CoreEvent
from kcm.api.core_v1 import EventSeries, EventSource, ObjectReference
from kcm.apimachinery.base import Int32
from kcm.apimachinery.meta_v1 import KubeObject, MicroTime, Time

API_VERSION = "events.k8s.io/v1"

# Names in events.k8s.io/v1 and in core v1. Fields that are not listed have the same name.
_NAMES = {
    "note": "message",
    "regarding": "involvedObject",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_CORE_NAMES = {core: name for name, core in _NAMES.items()}


class Event(KubeObject):
    """Reports what happened to an object, for people. Events are kept for a limited time."""

    api_version: str = API_VERSION
    kind: str = "Event"
    event_time: MicroTime | None = None
    series: EventSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str | None = None
    reason: str | None = None
    regarding: ObjectReference = Field(default_factory=ObjectReference)
    related: ObjectReference | None = None
    note: str | None = None
    type: str | None = None
    deprecated_source: EventSource = Field(default_factory=EventSource)
    deprecated_first_timestamp: Time | None = None
    deprecated_last_timestamp: Time | None = None
    deprecated_count: Int32 | None = None


def to_core(body: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the JSON in core/v1 of an Event's JSON in events.k8s.io/v1."""
    return _rename(body, _NAMES) | {"apiVersion": "v1"}


def from_core(body: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the JSON in events.k8s.io/v1 of an Event's JSON in core/v1."""
    return _rename(body, _CORE_NAMES) | {"apiVersion": API_VERSION}


def _rename(body: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in body.items()}


class EventConversion:
    """Converts Events between events.k8s.io/v1 and the stored core/v1."""

    def from_stored(self, raw: bytes, resource: object) -> Event:
        """Returns the Event in events.k8s.io/v1 of the stored JSON in core/v1."""
        body = from_core(json.loads(raw))
        return Event.model_validate_json(json.dumps(body), by_alias=True, by_name=False)

    def to_stored(self, obj: KubeObject) -> bytes:
        """Returns the JSON to store, which is that of an Event of core/v1."""
        core = CoreEvent.model_validate_json(
            json.dumps(to_core(obj.model_dump(mode="json", by_alias=True, exclude_none=True))),
            by_alias=True,
            by_name=False,
        )
        return type(core).__pydantic_serializer__.to_json(core, by_alias=True, exclude_none=True)


def as_core(event: Event) -> CoreEvent:
    """Returns an Event of events.k8s.io/v1 in core/v1."""
    return CoreEvent.model_validate_json(
        EventConversion().to_stored(event), by_alias=True, by_name=False
    )
