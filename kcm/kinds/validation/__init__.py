"""Validation: checks objects against upstream's rules before they are stored.

Each kind has functions for create, update and status update. A function for a field or struct has
its name, as upstream's Validate<Name>. It takes the value and the path of the field, and returns
the faults, none for a valid value. These functions are pure.

Objects must have their defaults (see `kcm.kinds.defaults`). A valid object can be decoded. Errors
read as upstream's do (`spec.replicas: Invalid value: -1: must be greater than or equal to 0`). A
new kind is one line in `_RULES`; for a kind without one, only the metadata is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kcm.api import apps_v1, autoscaling_v1, autoscaling_v2, core_v1, events_v1, rbac_v1
from kcm.api.admissionregistration_v1 import (
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    MutatingWebhookConfiguration,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
)
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.apiregistration_v1 import APIService
from kcm.api.batch_v1 import CronJob, Job
from kcm.api.certificates_v1 import CertificateSigningRequest
from kcm.api.certificates_v1beta1 import ClusterTrustBundle
from kcm.api.coordination_v1 import Lease
from kcm.api.custom.kinds import CustomObject
from kcm.api.discovery_v1 import EndpointSlice
from kcm.api.flowcontrol_v1 import FlowSchema, PriorityLevelConfiguration
from kcm.api.networking_v1 import (
    Ingress,
    IngressClass,
    IPAddress,
    NetworkPolicy,
    ServiceCIDR,
)
from kcm.api.node_v1 import RuntimeClass
from kcm.api.policy_v1 import PodDisruptionBudget
from kcm.api.resource_v1 import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from kcm.api.scheduling_v1 import PriorityClass
from kcm.api.storage_v1 import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    StorageClass,
    VolumeAttachment,
    VolumeAttributesClass,
)
from kcm.api.storagemigration_v1beta1 import StorageVersionMigration
from kcm.apiextensions import objects
from kcm.apimachinery import field_errors, names
from kcm.apimachinery.field_errors import Faults
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.errors import FieldError
from kcm.kinds.validation import (
    api_services,
    autoscalers,
    certificates,
    definitions,
    disruption,
    flow_control,
    meta,
    migrations,
    networking,
    rbac,
    runtime_classes,
    service_cidrs,
    trust_bundles,
    volume_claims,
)
from kcm.kinds.validation.admission import mutating_policies, policies, webhooks
from kcm.kinds.validation.apps import (
    daemonsets,
    deployments,
    replicasets,
    replication_controllers,
    statefulsets,
)
from kcm.kinds.validation.batch import cronjobs, job_status, jobs
from kcm.kinds.validation.core import (
    configs,
    endpoints,
    limit_ranges,
    nodes,
    quotas,
    services,
    small_kinds,
)
from kcm.kinds.validation.devices import device_claim_status, device_claims, device_slices
from kcm.kinds.validation.podspec import pod_parts, pod_status, pods
from kcm.kinds.validation.storage import drivers, volumes

__all__ = ["validate_create", "validate_status_update", "validate_update"]


def _create(obj: KubeObject) -> Faults:
    namespaced = obj.resource.namespaced
    return meta.metadata(obj, namespaced=namespaced, name_rule=names.subdomain_faults)


@dataclass(frozen=True)
class _Rules:
    """The validation functions of a kind."""

    create: Callable[[Any], Faults] = _create
    update: Callable[[Any, Any], Faults] = meta.metadata_update
    status_update: Callable[[Any, Any], Faults] = meta.metadata_update


_RULES: dict[type[KubeObject], _Rules] = {
    core_v1.Pod: _Rules(pods.create, pods.update, pod_status.update),
    apps_v1.ReplicaSet: _Rules(replicasets.create, replicasets.update, replicasets.status_update),
    core_v1.Node: _Rules(nodes.create, nodes.update, nodes.status_update),
    core_v1.Namespace: _Rules(
        small_kinds.create_namespace,
        small_kinds.update_namespace,
        small_kinds.update_namespace_status,
    ),
    Lease: _Rules(small_kinds.create_lease, small_kinds.update_lease),
    core_v1.Event: _Rules(small_kinds.create_event, small_kinds.update_event),
    events_v1.Event: _Rules(small_kinds.create_new_event, small_kinds.update_new_event),
    core_v1.ConfigMap: _Rules(configs.create_config_map, configs.update_config_map),
    core_v1.Secret: _Rules(configs.create_secret, configs.update_secret),
    core_v1.PersistentVolumeClaim: _Rules(
        volume_claims.create, volume_claims.update, volume_claims.status_update
    ),
    core_v1.ResourceQuota: _Rules(quotas.create, quotas.update, quotas.status_update),
    core_v1.LimitRange: _Rules(limit_ranges.create, limit_ranges.update),
    core_v1.ReplicationController: _Rules(
        replication_controllers.create,
        replication_controllers.update,
        replication_controllers.status_update,
    ),
    core_v1.Service: _Rules(services.create, services.update, services.status_update),
    core_v1.Endpoints: _Rules(endpoints.create_endpoints, endpoints.update_endpoints),
    EndpointSlice: _Rules(endpoints.create_slice, endpoints.update_slice),
    apps_v1.DaemonSet: _Rules(daemonsets.create, daemonsets.update, daemonsets.status_update),
    apps_v1.Deployment: _Rules(deployments.create, deployments.update, deployments.status_update),
    apps_v1.StatefulSet: _Rules(
        statefulsets.create, statefulsets.update, statefulsets.status_update
    ),
    apps_v1.ControllerRevision: _Rules(deployments.create_revision, deployments.update_revision),
    autoscaling_v2.HorizontalPodAutoscaler: _Rules(
        autoscalers.create, autoscalers.update, autoscalers.status_update
    ),
    autoscaling_v1.HorizontalPodAutoscaler: _Rules(
        autoscalers.create_v1, autoscalers.update_v1, autoscalers.status_update_v1
    ),
    Job: _Rules(jobs.create, jobs.update, job_status.update),
    CronJob: _Rules(cronjobs.create, cronjobs.update),
    CertificateSigningRequest: _Rules(
        certificates.create, certificates.update, certificates.status_update
    ),
    ClusterTrustBundle: _Rules(trust_bundles.create, trust_bundles.update),
    PodDisruptionBudget: _Rules(disruption.create, disruption.update, disruption.status_update),
    core_v1.PodTemplate: _Rules(small_kinds.create_pod_template, small_kinds.update_pod_template),
    core_v1.PersistentVolume: _Rules(volumes.create_volume, volumes.update_volume),
    StorageClass: _Rules(volumes.create_class, volumes.update_class),
    VolumeAttachment: _Rules(
        drivers.create_attachment,
        drivers.update_attachment,
        drivers.update_attachment,
    ),
    CSIDriver: _Rules(drivers.create_driver, drivers.update_driver),
    CSINode: _Rules(drivers.create_node, drivers.update_node),
    CSIStorageCapacity: _Rules(drivers.create_capacity, drivers.update_capacity),
    VolumeAttributesClass: _Rules(volumes.create_attributes_class, volumes.update_attributes_class),
    NetworkPolicy: _Rules(networking.create_policy, networking.update_policy),
    Ingress: _Rules(
        networking.create_ingress, networking.update_ingress, networking.update_ingress_status
    ),
    IngressClass: _Rules(networking.create_class, networking.update_class),
    ServiceCIDR: _Rules(service_cidrs.create_service_cidr, service_cidrs.update_service_cidr),
    IPAddress: _Rules(service_cidrs.create_ip_address, service_cidrs.update_ip_address),
    FlowSchema: _Rules(
        flow_control.create_schema, flow_control.update_schema, flow_control.update_schema_status
    ),
    PriorityLevelConfiguration: _Rules(
        flow_control.create_level, flow_control.update_level, flow_control.update_level_status
    ),
    RuntimeClass: _Rules(runtime_classes.create, runtime_classes.update),
    ValidatingAdmissionPolicy: _Rules(policies.create, policies.update),
    ValidatingAdmissionPolicyBinding: _Rules(policies.create_binding, policies.update_binding),
    MutatingAdmissionPolicy: _Rules(mutating_policies.create, mutating_policies.update),
    MutatingAdmissionPolicyBinding: _Rules(
        mutating_policies.create_binding, mutating_policies.update_binding
    ),
    DeviceClass: _Rules(device_claims.create_class, device_claims.update_class),
    ResourceClaim: _Rules(device_claims.create, device_claims.update, device_claim_status.update),
    ResourceClaimTemplate: _Rules(device_claims.create_template, device_claims.update_template),
    ResourceSlice: _Rules(device_slices.create, device_slices.update),
    ValidatingWebhookConfiguration: _Rules(webhooks.create, webhooks.update),
    MutatingWebhookConfiguration: _Rules(webhooks.create, webhooks.update),
    StorageVersionMigration: _Rules(migrations.create, migrations.update, migrations.status_update),
    PriorityClass: _Rules(small_kinds.create_priority_class, small_kinds.update_priority_class),
    rbac_v1.Role: _Rules(rbac.create_role, rbac.update_role),
    rbac_v1.RoleBinding: _Rules(rbac.create_role_binding, rbac.update_role_binding),
    rbac_v1.ClusterRole: _Rules(rbac.create_cluster_role, rbac.update_cluster_role),
    rbac_v1.ClusterRoleBinding: _Rules(
        rbac.create_cluster_role_binding, rbac.update_cluster_role_binding
    ),
    APIService: _Rules(api_services.create, api_services.update, api_services.status_update),
    CustomResourceDefinition: _Rules(
        definitions.create, definitions.update, definitions.status_update
    ),
}
_GENERAL = _Rules()


def _create_custom(obj: CustomObject) -> Faults:
    return _create(obj) + objects.validate(obj)


def _update_custom(new: CustomObject, old: CustomObject) -> Faults:
    return meta.metadata_update(new, old) + objects.validate(new, old)


_CUSTOM = _Rules(_create_custom, _update_custom, _update_custom)


def _rules_of(obj: KubeObject) -> _Rules:
    return _CUSTOM if isinstance(obj, CustomObject) else _RULES.get(type(obj), _GENERAL)


def validate_create(obj: KubeObject) -> list[FieldError]:
    """Returns the faults of a new object, whose name is generated and which has its defaults.

    As the other functions here, it returns at most `field_errors.MOST` faults.
    """
    return field_errors.collect(lambda: _rules_of(obj).create(obj))


def validate_update(new: KubeObject, old: KubeObject) -> list[FieldError]:
    """Returns the faults of a changed object, and of changes that are not allowed."""
    return field_errors.collect(lambda: _rules_of(new).update(new, old))


def validate_ephemeral_containers(new: core_v1.Pod, old: core_v1.Pod) -> list[FieldError]:
    """Returns the faults of a change to a pod's ephemeral containers."""
    return pod_parts.update_ephemeral_containers(new, old)


def validate_resize(new: core_v1.Pod, old: core_v1.Pod) -> list[FieldError]:
    """Returns the faults of a change to the resources of a pod's containers."""
    return pod_parts.resize(new, old)


def validate_finalize(new: core_v1.Namespace, old: core_v1.Namespace) -> list[FieldError]:
    """Returns the faults of a change to the spec.finalizers of a namespace."""
    return small_kinds.finalize_namespace(new, old)


def validate_status_update(new: KubeObject, old: KubeObject) -> list[FieldError]:
    """Returns the faults of an object with a changed status, and of changes that are not
    allowed.
    """
    return field_errors.collect(lambda: _rules_of(new).status_update(new, old))
