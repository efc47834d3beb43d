"""Builds objects for tests, with sensible defaults that every argument overrides.

For example `pod("web-1", owner=rs, phase="Running", ready=True, node="n1")`. Further keyword
arguments set fields of the spec (`priority=7`), `status={...}` sets fields of the status,
`metadata={...}` fields of the metadata. All have their names in Python.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kcm.api.apps_v1 import (
    Deployment,
    DeploymentSpec,
    DeploymentStatus,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicaSetStatus,
)
from kcm.api.batch_v1 import (
    CronJob,
    CronJobSpec,
    CronJobStatus,
    Job,
    JobSpec,
    JobStatus,
    JobTemplateSpec,
)
from kcm.api.coordination_v1 import Lease, LeaseSpec
from kcm.api.core_v1 import (
    ConfigMap,
    Container,
    Event,
    EventSource,
    Namespace,
    NamespaceSpec,
    NamespaceStatus,
    Node,
    NodeCondition,
    NodeSpec,
    NodeStatus,
    ObjectReference,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
    Service,
    ServicePort,
    ServiceSpec,
    Taint,
)
from kcm.apimachinery.meta_v1 import KubeObject, LabelSelector, ObjectMeta, OwnerReference
from kcm.apimachinery.ownership import new_controller_ref
from kcm.apimachinery.quantity import Quantity
from kcm.kinds.defaults import apply
from kcm.store.strategies.kinds import strategy_of

START = datetime(2024, 1, 1, tzinfo=UTC)
"""The creation time of all objects that builders build."""

_NAMESPACE_OF_UIDS = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")


def uid_for(kind: str, namespace: str, name: str) -> str:
    """Returns the uid that a builder gives to an object, which depends on these arguments only."""
    return str(uuid.uuid5(_NAMESPACE_OF_UIDS, f"{kind}/{namespace}/{name}"))


def object_meta(
    kind: str,
    name: str,
    namespace: str | None,
    *,
    labels: Mapping[str, str] | None = None,
    owner: KubeObject | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> ObjectMeta:
    """Returns metadata with the fields that the store sets. `overrides` replaces any of them."""
    fields: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": uid_for(kind, namespace or "", name),
        "resource_version": "1",
        "creation_timestamp": START,
        "labels": dict(labels) if labels is not None else None,
        "owner_references": [new_controller_ref(owner)] if owner is not None else None,
    }
    return ObjectMeta(**(fields | dict(overrides or {})))


def owner_reference(owner: KubeObject, **changes: Any) -> OwnerReference:
    """Returns an owner reference that is not a controller reference."""
    reference = new_controller_ref(owner)
    return reference.replace(**({"controller": None, "block_owner_deletion": None} | changes))


def container(name: str = "c", image: str = "nginx:1.25", **fields: Any) -> Container:
    return Container(name=name, image=image, **fields)


def condition(type: str, status: str = "True", *, since: datetime | None = START) -> PodCondition:
    return PodCondition(type=type, status=status, last_transition_time=since)


def pod(
    name: str = "web-1",
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    owner: KubeObject | None = None,
    phase: str = "Pending",
    ready: bool | None = None,
    ready_since: datetime | None = START,
    node: str | None = None,
    deleting: datetime | None = None,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    """Returns a pod.

    By default it has the labels in the template of its owner, if that is a ReplicaSet.
    """
    if labels is None and isinstance(owner, ReplicaSet):
        labels = owner.spec.template.metadata.labels
    overrides: dict[str, Any] = dict(metadata or {})
    if deleting is not None:
        overrides = {
            "deletion_timestamp": deleting,
            "deletion_grace_period_seconds": 30,
        } | overrides
    status_fields: dict[str, Any] = {"phase": phase}
    if ready is not None:
        word = "True" if ready else "False"
        status_fields["conditions"] = [condition("Ready", word, since=ready_since)]
    return apply(
        Pod(
            metadata=object_meta(
                "Pod", name, namespace, labels=labels, owner=owner, overrides=overrides
            ),
            spec=PodSpec(**({"containers": [container()], "node_name": node} | spec)),
            status=PodStatus(**(status_fields | dict(status or {}))),
        )
    )


def _template(labels: Mapping[str, str] | None = None, **spec: Any) -> PodTemplateSpec:
    """Returns a pod template with one container."""
    template = PodTemplateSpec(spec=PodSpec(containers=[container()], **spec))
    return template.replace(metadata=ObjectMeta(labels=dict(labels))) if labels else template


def replica_set(
    name: str = "web",
    *,
    namespace: str = "default",
    replicas: int | None = 3,
    labels: Mapping[str, str] | None = None,
    selector: LabelSelector | Mapping[str, str] | None = None,
    template: PodTemplateSpec | None = None,
    owner: KubeObject | None = None,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> ReplicaSet:
    """Returns a ReplicaSet. Its template and selector have `labels`, by default app=<name>."""
    labels = dict(labels or {"app": name})
    if not isinstance(selector, LabelSelector):
        selector = LabelSelector(match_labels=dict(selector if selector is not None else labels))
    template = template or _template(labels)
    fields = {"replicas": replicas, "selector": selector, "template": template} | spec
    return apply(
        ReplicaSet(
            metadata=object_meta(
                "ReplicaSet",
                name,
                namespace,
                labels=labels,
                owner=owner,
                overrides={"generation": 1} | dict(metadata or {}),
            ),
            spec=ReplicaSetSpec(**fields),
            status=ReplicaSetStatus(**dict(status or {})),
        )
    )


def deployment(
    name: str = "web",
    *,
    namespace: str = "default",
    replicas: int | None = 3,
    labels: Mapping[str, str] | None = None,
    template: PodTemplateSpec | None = None,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Deployment:
    """Returns a Deployment. Its template and selector have `labels`, by default app=<name>."""
    labels = dict(labels or {"app": name})
    selector = LabelSelector(match_labels=dict(labels))
    template = template or _template(labels)
    fields = {"replicas": replicas, "selector": selector, "template": template} | spec
    overrides = {"generation": 1} | dict(metadata or {})
    return apply(
        Deployment(
            metadata=object_meta("Deployment", name, namespace, labels=labels, overrides=overrides),
            spec=DeploymentSpec(**fields),
            status=DeploymentStatus(**dict(status or {})),
        )
    )


def job(
    name: str = "work",
    *,
    namespace: str = "default",
    template: PodTemplateSpec | None = None,
    owner: KubeObject | None = None,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Job:
    """Returns a Job as the store completes it, with the generated selector."""
    overrides = {"generation": 1} | dict(metadata or {})
    made = Job(
        metadata=object_meta("Job", name, namespace, owner=owner, overrides=overrides),
        spec=JobSpec(**({"template": template or _template(restart_policy="Never")} | spec)),
    )
    completed = apply(strategy_of(Job.resource).for_create(made))
    assert isinstance(completed, Job)  # a strategy changes no kind
    return completed.with_status(JobStatus(**dict(status or {})))


def cron_job(
    name: str = "nightly",
    schedule: str = "*/5 * * * *",
    *,
    namespace: str = "default",
    job_template: JobTemplateSpec | None = None,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> CronJob:
    work = JobSpec(template=_template(restart_policy="Never"))
    overrides = {"generation": 1} | dict(metadata or {})
    fields = {"schedule": schedule, "job_template": job_template or JobTemplateSpec(spec=work)}
    return apply(
        CronJob(
            metadata=object_meta("CronJob", name, namespace, overrides=overrides),
            spec=CronJobSpec(**(fields | spec)),
            status=CronJobStatus(**dict(status or {})),
        )
    )


def node(
    name: str = "n1",
    *,
    labels: Mapping[str, str] | None = None,
    ready: bool | None = True,
    taints: list[Taint] | None = None,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: int = 110,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Node:
    """Returns a node that reports Ready. With `ready=None` the condition's status is Unknown."""
    word = {True: "True", False: "False", None: "Unknown"}[ready]
    capacity = {"cpu": Quantity(cpu), "memory": Quantity(memory), "pods": Quantity(pods)}
    ready_condition = NodeCondition(
        type="Ready", status=word, last_heartbeat_time=START, last_transition_time=START
    )
    status_fields: dict[str, Any] = {"capacity": capacity, "conditions": [ready_condition]}
    labels = {"kubernetes.io/hostname": name} | dict(labels or {})
    return apply(
        Node(
            metadata=object_meta("Node", name, None, labels=labels, overrides=metadata),
            spec=NodeSpec(**({"taints": taints} | spec)),
            status=NodeStatus(**(status_fields | dict(status or {}))),
        )
    )


def namespace(
    name: str = "default",
    *,
    labels: Mapping[str, str] | None = None,
    phase: str = "Active",
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Namespace:
    return apply(
        Namespace(
            metadata=object_meta("Namespace", name, None, labels=labels, overrides=metadata),
            spec=NamespaceSpec(**spec),
            status=NamespaceStatus(phase=phase),
        )
    )


def service(
    name: str = "web",
    *,
    namespace: str = "default",
    selector: Mapping[str, str] | None = None,
    ports: Sequence[ServicePort] = (ServicePort(port=80),),
    labels: Mapping[str, str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Service:
    """Returns a Service that by default selects the pods with the label app=<name>."""
    chosen = {"app": name} if selector is None else dict(selector)
    return apply(
        Service(
            metadata=object_meta("Service", name, namespace, labels=labels, overrides=metadata),
            spec=ServiceSpec(selector=chosen, ports=list(ports), **spec),
        )
    )


def config_map(
    name: str = "config",
    *,
    namespace: str = "default",
    data: Mapping[str, str] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> ConfigMap:
    return ConfigMap(
        metadata=object_meta("ConfigMap", name, namespace, overrides=metadata),
        data=dict(data or {}),
    )


def lease(
    name: str = "kube-controller-manager",
    *,
    namespace: str = "kube-system",
    holder: str | None = "host_1",
    renewed: datetime = START,
    seconds: int = 15,
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Lease:
    fields: dict[str, Any] = {
        "holder_identity": holder,
        "lease_duration_seconds": seconds,
        "acquire_time": renewed,
        "renew_time": renewed,
        "lease_transitions": 0,
    }
    return Lease(
        metadata=object_meta("Lease", name, namespace, overrides=metadata),
        spec=LeaseSpec(**(fields | spec)),
    )


def event(
    about: KubeObject,
    reason: str = "SuccessfulCreate",
    message: str = "Created pod: web-1",
    *,
    type: str = "Normal",
    component: str = "replicaset-controller",
    name: str | None = None,
    **fields: Any,
) -> Event:
    """Returns an Event about an object, in the object's namespace."""
    namespace = about.namespace or "default"
    values: dict[str, Any] = {
        "involved_object": ObjectReference(
            api_version=about.api_version,
            kind=about.kind,
            name=about.name,
            namespace=about.metadata.namespace,
            uid=about.uid,
        ),
        "reason": reason,
        "message": message,
        "type": type,
        "source": EventSource(component=component),
        "first_timestamp": START,
        "last_timestamp": START,
        "count": 1,
        "reporting_component": component,
    }
    meta = object_meta("Event", name or f"{about.name}.1", namespace)
    return Event(metadata=meta, **(values | fields))
