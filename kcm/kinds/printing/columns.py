"""The columns of the kinds: a title, whether only the wide format has it, and its text.

Source: pkg/printers/internalversion/printers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from kcm.api import autoscaling_v1, events_v1
from kcm.api.apps_v1 import ReplicaSet
from kcm.api.autoscaling_v1 import HorizontalPodAutoscaler as AutoscalerV1
from kcm.api.autoscaling_v2 import HorizontalPodAutoscaler
from kcm.api.coordination_v1 import Lease
from kcm.api.core_v1 import Event, Namespace, Node, Pod, ReplicationController
from kcm.api.custom.kinds import CustomResource
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.kinds.printing import kinds, pod_status
from kcm.kinds.printing.column import AGE, NAME, NONE, Column, Text, containers, name, selector
from kcm.kinds.printing.custom import columns as custom_columns
from kcm.kinds.printing.durations import UNKNOWN, age, human_duration

__all__ = ["Column", "columns_of", "convert_for_columns", "event_count", "event_last_seen"]

_ROLE_PREFIX = "node-role.kubernetes.io/"


def columns_of(resource: Resource, *, wide: bool = False) -> list[Column]:
    """Returns the columns of a kind, Name and Age for one without its own."""
    if isinstance(resource, CustomResource):
        every = custom_columns(resource.custom)
        return [column for column in every if wide or not column.wide]
    model = _PRINTED_AS.get(resource.model, resource.model)
    columns = _BY_KIND.get(model) or kinds.COLUMNS.get(model, (NAME, AGE))
    return [column for column in columns if wide or not column.wide]


def convert_for_columns(obj: KubeObject) -> KubeObject:
    """Returns the object in the version for which the columns are defined."""
    if isinstance(obj, events_v1.Event):
        return events_v1.as_core(obj)
    return autoscaling_v1.as_v2(obj) if isinstance(obj, AutoscalerV1) else obj


_PRINTED_AS: Mapping[type[KubeObject], type[KubeObject]] = {
    events_v1.Event: Event,
    AutoscalerV1: HorizontalPodAutoscaler,
}


def _node_status(node: Node, _: datetime) -> str:
    ready = next((c for c in node.status.conditions or () if c.type == "Ready"), None)
    words = ["Unknown" if ready is None else "Ready" if ready.status == "True" else "NotReady"]
    if node.spec.unschedulable:
        words.append("SchedulingDisabled")
    return ",".join(words)


def _node_roles(node: Node, _: datetime) -> str:
    roles = {
        name.removeprefix(_ROLE_PREFIX)
        for name in node.labels
        if name.startswith(_ROLE_PREFIX) and name != _ROLE_PREFIX
    }
    if role := node.labels.get("kubernetes.io/role"):
        roles.add(role)
    return ",".join(sorted(roles)) or NONE


def _node_address(kind: str) -> Text:
    def text(node: Node, _: datetime) -> str:
        addresses = (a.address for a in node.status.addresses or () if a.type == kind)
        return next(addresses, NONE)

    return text


def _node_info(field: str) -> Text:
    def text(node: Node, _: datetime) -> str:
        info = node.status.node_info
        return (getattr(info, field) if info else "") or UNKNOWN

    return text


def _kubelet_version(node: Node, _: datetime) -> str:
    return node.status.node_info.kubelet_version if node.status.node_info else ""


def event_last_seen(event: Event) -> datetime | None:
    """Returns when the Event last occurred."""
    if event.series is not None and event.series.last_observed_time is not None:
        return event.series.last_observed_time
    return event.last_timestamp or event.event_time or event.metadata.creation_timestamp


def event_count(event: Event) -> int:
    """Returns how often the Event has occurred."""
    if event.series is not None and event.series.count:
        return event.series.count
    return event.count or 1


def _event_interval(event: Event, now: datetime) -> str:
    last = age(event_last_seen(event), now)
    first = event.first_timestamp or event.event_time
    if event_count(event) > 1 and first is not None:
        return f"{last} (x{event_count(event)} over {human_duration(now - first)})"
    return last


def _event_object(event: Event, _: datetime) -> str:
    about = event.involved_object
    return f"{(about.kind or '').lower()}/{about.name or ''}"


def _event_source(event: Event, _: datetime) -> str:
    parts = (event.source.component or event.reporting_component, event.source.host)
    return ", ".join(part for part in parts if part)


def _template_column(title: str, field: str) -> Column:
    def text(owner: ReplicaSet | ReplicationController, _: datetime) -> str:
        template = owner.spec.template
        return containers(template.spec.containers if template else [], field)

    return Column(title, text, wide=True)


def _replica_selector(owner: ReplicaSet | ReplicationController, _: datetime) -> str:
    given = owner.spec.selector
    if not isinstance(given, dict):
        return selector(given)
    return ",".join(f"{key}={value}" for key, value in sorted(given.items())) or NONE


_REPLICAS = (
    NAME,
    Column(
        "Desired",
        lambda rs, _: str(1 if rs.spec.replicas is None else rs.spec.replicas),
        type="integer",
    ),
    Column("Current", lambda rs, _: str(rs.status.replicas), type="integer"),
    Column("Ready", lambda rs, _: str(rs.status.ready_replicas or 0), type="integer"),
    AGE,
    _template_column("Containers", "name"),
    _template_column("Images", "image"),
    Column("Selector", _replica_selector, wide=True),
)

_BY_KIND: Mapping[type[KubeObject], tuple[Column, ...]] = {
    Pod: (
        NAME,
        Column("Ready", lambda pod, _: pod_status.ready(pod)),
        Column("Status", lambda pod, _: pod_status.reason(pod)),
        Column("Restarts", pod_status.restarts),
        AGE,
        Column("IP", lambda pod, _: pod.status.pod_ip or NONE, wide=True),
        Column("Node", lambda pod, _: pod.spec.node_name or NONE, wide=True),
        Column("Nominated Node", lambda pod, _: pod.status.nominated_node_name or NONE, wide=True),
        Column("Readiness Gates", lambda pod, _: pod_status.readiness_gates(pod), wide=True),
    ),
    ReplicationController: _REPLICAS,
    ReplicaSet: _REPLICAS,
    Node: (
        NAME,
        Column("Status", _node_status),
        Column("Roles", _node_roles),
        AGE,
        Column("Version", _kubelet_version),
        Column("Internal-IP", _node_address("InternalIP"), wide=True),
        Column("External-IP", _node_address("ExternalIP"), wide=True),
        Column("OS-Image", _node_info("os_image"), wide=True),
        Column("Kernel-Version", _node_info("kernel_version"), wide=True),
        Column("Container-Runtime", _node_info("container_runtime_version"), wide=True),
    ),
    Namespace: (NAME, Column("Status", lambda ns, _: ns.status.phase or ""), AGE),
    Event: (
        Column("Last Seen", _event_interval),
        Column("Type", lambda event, _: event.type or ""),
        Column("Reason", lambda event, _: event.reason or ""),
        Column("Object", _event_object),
        Column("Subobject", lambda event, _: event.involved_object.field_path or "", wide=True),
        Column("Source", _event_source, wide=True),
        Column("Message", lambda event, _: (event.message or "").strip()),
        Column("First Seen", lambda event, now: age(event.first_timestamp, now), wide=True),
        Column("Count", lambda event, _: str(event_count(event)), wide=True),
        Column("Name", name, wide=True),
    ),
    Lease: (NAME, Column("Holder", lambda lease, _: lease.spec.holder_identity or ""), AGE),
}
