"""The columns of config maps, services, Deployments, budgets, roles, definitions and others.

Source: pkg/printers/internalversion/printers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial

from kcm.api import core_v1, rbac_v1
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.apps_v1 import ControllerRevision, DaemonSet, Deployment, StatefulSet
from kcm.api.core_v1 import Endpoints, PodTemplate, ResourceQuota, Service
from kcm.api.core_v1.nodes import ComponentStatus
from kcm.api.discovery_v1 import EndpointSlice
from kcm.api.policy_v1 import PodDisruptionBudget
from kcm.api.rbac_v1 import ClusterRoleBinding, RoleBinding
from kcm.api.scheduling_v1 import PriorityClass
from kcm.apimachinery.meta_v1 import KubeObject, format_time
from kcm.apimachinery.ownership import controller_of
from kcm.apimachinery.quantity import Quantity
from kcm.kinds.printing import (
    admission_policies,
    api_services,
    autoscaling,
    batch,
    certificates,
    devices,
    flow_control,
    networking,
    storage,
)
from kcm.kinds.printing.column import AGE, NAME, NONE, Column, containers, selector

_MOST_SHOWN = 3
_UNSET = "<unset>"


def _creation_time(obj: KubeObject, _: datetime) -> str:
    moment = obj.metadata.creation_timestamp
    return format_time(moment) if moment else ""


def _few(values: Iterable[str]) -> str:
    """Returns the first three values, and the number of further ones."""
    all_values = list(values)
    shown = ",".join(all_values[:_MOST_SHOWN])
    more = len(all_values) - _MOST_SHOWN
    return f"{shown} + {more} more..." if more > 0 else shown


def _external_ip(service: Service, _: datetime) -> str:
    spec, external = service.spec, service.spec.external_ips or []
    if spec.type == "ExternalName":
        return spec.external_name or NONE
    if spec.type != "LoadBalancer":
        return ",".join(external) or NONE
    ingress = service.status.load_balancer.ingress or ()
    addresses = [entry.ip or entry.hostname or "" for entry in ingress]
    return ",".join([*addresses, *external]) or "<pending>"


def _service_ports(service: Service, _: datetime) -> str:
    shown = [
        f"{port.port}:{port.node_port}/{port.protocol}"
        if port.node_port
        else f"{port.port}/{port.protocol}"
        for port in service.spec.ports or ()
    ]
    return ",".join(shown) or NONE


def _service_selector(service: Service, _: datetime) -> str:
    return _labels(service.spec.selector)


def _endpoints(endpoints: Endpoints, _: datetime) -> str:
    places = [
        (address.ip, port.port)
        for subset in endpoints.subsets or ()
        for port in subset.ports or ()
        for address in subset.addresses or ()
    ]
    without_ports = [
        address.ip
        for subset in endpoints.subsets or ()
        if not subset.ports
        for address in subset.addresses or ()
    ]
    return _few([f"{_bracket(ip)}:{port}" for ip, port in places] + without_ports) or NONE


def _bracket(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip


def _slice_ports(endpoint_slice: EndpointSlice, _: datetime) -> str:
    ports = [
        str(port.port) if port.port is not None else "*" for port in endpoint_slice.ports or ()
    ]
    return _few(ports) or _UNSET


def _slice_endpoints(endpoint_slice: EndpointSlice, _: datetime) -> str:
    return _few(ip for endpoint in endpoint_slice.endpoints for ip in endpoint.addresses) or _UNSET


def _ready(deployment: Deployment | StatefulSet, _: datetime) -> str:
    return f"{deployment.status.ready_replicas or 0}/{deployment.spec.replicas or 0}"


def _controller(revision: ControllerRevision, _: datetime) -> str:
    owner = controller_of(revision)
    if owner is None:
        return NONE
    group = owner.api_version.rpartition("/")[0]
    return f"{owner.kind.lower()}.{group}/{owner.name}".replace("./", "/")


def _count(field: str, daemon_set: DaemonSet, _: datetime) -> str:
    return str(getattr(daemon_set.status, field) or 0)


def _node_selector(daemon_set: DaemonSet, _: datetime) -> str:
    pairs = sorted((daemon_set.spec.template.spec.node_selector or {}).items())
    return ",".join(f"{key}={value}" for key, value in pairs) or NONE


def _labels(labels: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def _quota_amounts(limits: bool, quota: ResourceQuota, _: datetime) -> str:
    """Returns used and allowed amounts: those of limits if `limits`, otherwise all others."""
    hard, used = quota.status.hard or {}, quota.status.used or {}
    return ", ".join(
        f"{name}: {used.get(name, Quantity())}/{hard[name]}"
        for name in sorted(hard)
        if name.startswith("limits.") == limits
    )


def _or_not_available(value: int | str | None) -> str:
    return "N/A" if value is None else str(value)


def _role(binding: RoleBinding | ClusterRoleBinding, _: datetime) -> str:
    return f"{binding.role_ref.kind}/{binding.role_ref.name}"


def _subjects(title: str, kind: str) -> Column:
    def text(binding: RoleBinding | ClusterRoleBinding, _: datetime) -> str:
        return ", ".join(
            f"{subject.namespace}/{subject.name}" if subject.namespace else subject.name
            for subject in binding.subjects or ()
            if subject.kind == kind
        )

    return Column(title, text, wide=True)


def _containers_of_template(title: str, field: str) -> Column:
    def text(owner: Deployment | StatefulSet | DaemonSet, _: datetime) -> str:
        return containers(owner.spec.template.spec.containers, field)

    return Column(title, text, wide=True)


def _component(field: str, status: ComponentStatus, _: datetime) -> str:
    """Returns a field of a component's condition Healthy, its status as a word."""
    healthy = next((one for one in status.conditions if one.type == "Healthy"), None)
    if field == "status":
        state = healthy.status if healthy is not None else ""
        return {"True": "Healthy", "False": "Unhealthy"}.get(state, "Unknown")
    return (getattr(healthy, field) or "") if healthy is not None else ""


_CONTAINERS = _containers_of_template("Containers", "name")
_IMAGES = _containers_of_template("Images", "image")
_BINDING = (
    NAME,
    Column("Role", _role),
    AGE,
    _subjects("Users", "User"),
    _subjects("Groups", "Group"),
    _subjects("ServiceAccounts", "ServiceAccount"),
)
_BY_DATE = (NAME, Column("Created At", _creation_time, type="date"))

COLUMNS: Mapping[type[KubeObject], tuple[Column, ...]] = {
    core_v1.ConfigMap: (
        NAME,
        Column(
            "Data", lambda cm, _: str(len(cm.data or ()) + len(cm.binary_data or ())), number=True
        ),
        AGE,
    ),
    core_v1.Secret: (
        NAME,
        Column("Type", lambda secret, _: secret.type or ""),
        Column("Data", lambda secret, _: str(len(secret.data or ())), number=True),
        AGE,
    ),
    Service: (
        NAME,
        Column("Type", lambda service, _: service.spec.type or ""),
        Column("Cluster-IP", lambda service, _: service.spec.cluster_ip or NONE),
        Column("External-IP", _external_ip),
        Column("Port(s)", _service_ports),
        AGE,
        Column("Selector", _service_selector, wide=True),
    ),
    core_v1.ServiceAccount: (
        NAME,
        Column("Secrets", lambda account, _: str(len(account.secrets or ())), number=True),
        AGE,
    ),
    ComponentStatus: (
        NAME,
        Column("Status", partial(_component, "status")),
        Column("Message", partial(_component, "message")),
        Column("Error", partial(_component, "error")),
    ),
    ResourceQuota: (
        NAME,
        Column("Request", partial(_quota_amounts, False)),
        Column("Limit", partial(_quota_amounts, True)),
        AGE,
    ),
    core_v1.LimitRange: _BY_DATE,
    PodTemplate: (
        NAME,
        Column("Containers", lambda pt, _: containers(pt.template.spec.containers, "name")),
        Column("Images", lambda pt, _: containers(pt.template.spec.containers, "image")),
        Column("Pod Labels", lambda pt, _: _labels(pt.template.metadata.labels)),
    ),
    Endpoints: (NAME, Column("Endpoints", _endpoints), AGE),
    EndpointSlice: (
        NAME,
        Column("AddressType", lambda item, _: item.address_type),
        Column("Ports", _slice_ports),
        Column("Endpoints", _slice_endpoints),
        AGE,
    ),
    Deployment: (
        NAME,
        Column("Ready", _ready),
        Column("Up-to-date", lambda item, _: str(item.status.updated_replicas or 0), number=True),
        Column("Available", lambda item, _: str(item.status.available_replicas or 0), number=True),
        AGE,
        _CONTAINERS,
        _IMAGES,
        Column("Selector", lambda item, _: selector(item.spec.selector), wide=True),
    ),
    StatefulSet: (NAME, Column("Ready", _ready), AGE, _CONTAINERS, _IMAGES),
    DaemonSet: (
        NAME,
        *(
            Column(title, partial(_count, field), number=True)
            for title, field in (
                ("Desired", "desired_number_scheduled"),
                ("Current", "current_number_scheduled"),
                ("Ready", "number_ready"),
                ("Up-to-date", "updated_number_scheduled"),
                ("Available", "number_available"),
            )
        ),
        Column("Node Selector", _node_selector),
        AGE,
        _CONTAINERS,
        _IMAGES,
        Column("Selector", lambda item, _: selector(item.spec.selector), wide=True),
    ),
    ControllerRevision: (
        NAME,
        Column("Controller", _controller),
        Column("Revision", lambda revision, _: str(revision.revision), number=True),
        AGE,
    ),
    **admission_policies.COLUMNS,
    **api_services.COLUMNS,
    **autoscaling.COLUMNS,
    **flow_control.COLUMNS,
    **networking.COLUMNS,
    **storage.COLUMNS,
    **certificates.COLUMNS,
    **devices.COLUMNS,
    **batch.COLUMNS,
    PodDisruptionBudget: (
        NAME,
        Column("Min Available", lambda pdb, _: _or_not_available(pdb.spec.min_available)),
        Column("Max Unavailable", lambda pdb, _: _or_not_available(pdb.spec.max_unavailable)),
        Column(
            "Allowed Disruptions",
            lambda pdb, _: str(pdb.status.disruptions_allowed),
            type="integer",
        ),
        AGE,
    ),
    PriorityClass: (
        NAME,
        Column("Value", lambda item, _: str(item.value), type="integer"),
        Column(
            "Global-Default",
            lambda item, _: "true" if item.global_default else "false",
            type="boolean",
        ),
        AGE,
        Column("PreemptionPolicy", lambda item, _: item.preemption_policy or ""),
    ),
    rbac_v1.Role: _BY_DATE,
    rbac_v1.ClusterRole: _BY_DATE,
    RoleBinding: _BINDING,
    ClusterRoleBinding: _BINDING,
    CustomResourceDefinition: _BY_DATE,
}
