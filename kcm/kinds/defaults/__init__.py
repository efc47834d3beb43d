"""Defaulting: fills in upstream's defaults, with one function for each kind.

Objects are not changed in place. An object that needs no defaults is returned as it is, and so are
its parts, so defaulting an object that shares parts with a cached one is safe and cheap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kcm.api import (
    admissionregistration_v1,
    apiextensions_v1,
    apiregistration_v1,
    apps_v1,
    autoscaling_v1,
    autoscaling_v2,
    batch_v1,
    core_v1,
    discovery_v1,
    flowcontrol_v1,
    networking_v1,
    rbac_v1,
    resource_v1,
    scheduling_v1,
    storage_v1,
)
from kcm.api.custom.kinds import CustomObject
from kcm.apiextensions import objects
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.kinds.defaults import (
    admission_policies,
    api_services,
    apps,
    autoscalers,
    batch,
    cluster,
    devices,
    flow_control,
    kinds,
    pods,
    services,
    volume_claims,
    volumes,
)
from kcm.kinds.defaults.volumes import image_tag

__all__ = ["apply", "image_tag"]

ObjectT = TypeVar("ObjectT", bound=KubeObject)

_BY_KIND: dict[type[KubeObject], Callable[[Any], Any]] = {
    core_v1.Pod: pods.pod,
    core_v1.Namespace: cluster.namespace,
    core_v1.Node: cluster.node,
    core_v1.Secret: kinds.secret,
    core_v1.PersistentVolumeClaim: volume_claims.claim,
    core_v1.PersistentVolume: volumes.persistent_volume,
    core_v1.PodTemplate: kinds.pod_template,
    core_v1.ResourceQuota: cluster.resource_quota,
    core_v1.LimitRange: cluster.limit_range,
    core_v1.ReplicationController: apps.replication_controller,
    core_v1.Service: services.service,
    core_v1.Endpoints: services.endpoints,
    discovery_v1.EndpointSlice: services.endpoint_slice,
    apps_v1.ReplicaSet: apps.replica_set,
    apps_v1.DaemonSet: apps.daemon_set,
    apps_v1.Deployment: apps.deployment,
    apps_v1.StatefulSet: apps.stateful_set,
    autoscaling_v1.HorizontalPodAutoscaler: autoscalers.autoscaler_v1,
    autoscaling_v2.HorizontalPodAutoscaler: autoscalers.autoscaler,
    batch_v1.Job: batch.job,
    batch_v1.CronJob: batch.cron_job,
    scheduling_v1.PriorityClass: kinds.priority_class,
    storage_v1.StorageClass: kinds.storage_class,
    storage_v1.CSIDriver: kinds.csi_driver,
    networking_v1.NetworkPolicy: kinds.network_policy,
    networking_v1.IngressClass: kinds.ingress_class,
    flowcontrol_v1.FlowSchema: flow_control.flow_schema,
    flowcontrol_v1.PriorityLevelConfiguration: flow_control.priority_level,
    admissionregistration_v1.ValidatingAdmissionPolicy: admission_policies.policy,
    admissionregistration_v1.ValidatingAdmissionPolicyBinding: admission_policies.binding,
    admissionregistration_v1.MutatingAdmissionPolicy: admission_policies.policy,
    admissionregistration_v1.MutatingAdmissionPolicyBinding: admission_policies.binding,
    admissionregistration_v1.ValidatingWebhookConfiguration: admission_policies.webhooks,
    admissionregistration_v1.MutatingWebhookConfiguration: admission_policies.webhooks,
    resource_v1.ResourceClaim: devices.claim,
    resource_v1.ResourceClaimTemplate: devices.template,
    resource_v1.ResourceSlice: devices.resource_slice,
    rbac_v1.RoleBinding: kinds.binding,
    rbac_v1.ClusterRoleBinding: kinds.binding,
    apiregistration_v1.APIService: api_services.api_service,
    apiextensions_v1.CustomResourceDefinition: kinds.definition,
}


def apply(obj: ObjectT) -> ObjectT:
    """Returns the object with the defaults of its kind, or `obj` itself if it needs none.

    A custom object is pruned, too.
    """
    if isinstance(obj, CustomObject):
        return objects.complete(obj)
    fill = _BY_KIND.get(type(obj))
    return obj if fill is None else fill(obj)
