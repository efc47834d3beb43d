"""The built-in kinds. A new kind needs a model and one line in `_KINDS`."""

from __future__ import annotations

from dataclasses import replace

from kcm.api import (
    admissionregistration_v1,
    apiextensions_v1,
    apiregistration_v1,
    apps_v1,
    autoscaling_v1,
    autoscaling_v2,
    batch_v1,
    certificates_v1,
    certificates_v1beta1,
    coordination_v1,
    core_v1,
    discovery_v1,
    events_v1,
    flowcontrol_v1,
    networking_v1,
    node_v1,
    policy_v1,
    rbac_v1,
    resource_v1,
    scheduling_v1,
    storage_v1,
    storagemigration_v1beta1,
)
from kcm.api.scheme.former import FormerVersion
from kcm.api.scheme.kinds import Kinds
from kcm.apimachinery.meta_v1 import KubeObject, Resource, ScalePaths


def kind(
    model: type[KubeObject],
    plural: str,
    *,
    cluster: bool = False,
    short: str = "",
    has_status: bool = True,
    categories: str = "",
    scale: ScalePaths | None = None,
) -> Resource:
    """Returns a resource whose group, version and kind are the defaults of the model's fields.

    `short` and `categories` are names separated by spaces; `cluster` says that objects have no
    namespace.
    """
    fields = model.model_fields
    group, _, version = str(fields["api_version"].default).rpartition("/")
    kind_name = str(fields["kind"].default)
    return Resource(
        group=group,
        version=version,
        kind=kind_name,
        plural=plural,
        singular=kind_name.lower(),
        namespaced=not cluster,
        model=model,
        short_names=tuple(short.split()),
        has_status=has_status,
        categories=tuple(categories.split()),
        scale=scale,
    )


_KINDS = (
    kind(core_v1.Pod, "pods", short="po", categories="all"),
    kind(core_v1.Node, "nodes", cluster=True, short="no"),
    kind(core_v1.Namespace, "namespaces", cluster=True, short="ns"),
    kind(core_v1.Event, "events", short="ev", has_status=False),
    kind(core_v1.ConfigMap, "configmaps", short="cm", has_status=False),
    kind(core_v1.Secret, "secrets", has_status=False),
    kind(core_v1.Service, "services", short="svc", categories="all"),
    kind(core_v1.ServiceAccount, "serviceaccounts", short="sa", has_status=False),
    kind(core_v1.Endpoints, "endpoints", short="ep", has_status=False),
    kind(core_v1.PersistentVolumeClaim, "persistentvolumeclaims", short="pvc"),
    kind(core_v1.PersistentVolume, "persistentvolumes", cluster=True, short="pv"),
    kind(core_v1.PodTemplate, "podtemplates", has_status=False),
    kind(core_v1.ResourceQuota, "resourcequotas", short="quota"),
    kind(core_v1.LimitRange, "limitranges", short="limits", has_status=False),
    kind(
        core_v1.ReplicationController,
        "replicationcontrollers",
        short="rc",
        categories="all",
        scale=ScalePaths(),
    ),
    kind(
        admissionregistration_v1.ValidatingAdmissionPolicy,
        "validatingadmissionpolicies",
        cluster=True,
        categories="api-extensions",
    ),
    kind(
        admissionregistration_v1.ValidatingAdmissionPolicyBinding,
        "validatingadmissionpolicybindings",
        cluster=True,
        has_status=False,
        categories="api-extensions",
    ),
    kind(
        admissionregistration_v1.ValidatingWebhookConfiguration,
        "validatingwebhookconfigurations",
        cluster=True,
        has_status=False,
        categories="api-extensions",
    ),
    kind(
        admissionregistration_v1.MutatingWebhookConfiguration,
        "mutatingwebhookconfigurations",
        cluster=True,
        has_status=False,
        categories="api-extensions",
    ),
    kind(
        admissionregistration_v1.MutatingAdmissionPolicy,
        "mutatingadmissionpolicies",
        cluster=True,
        has_status=False,
        categories="api-extensions",
    ),
    kind(
        admissionregistration_v1.MutatingAdmissionPolicyBinding,
        "mutatingadmissionpolicybindings",
        cluster=True,
        has_status=False,
        categories="api-extensions",
    ),
    kind(discovery_v1.EndpointSlice, "endpointslices", has_status=False),
    kind(apps_v1.Deployment, "deployments", short="deploy", categories="all", scale=ScalePaths()),
    kind(apps_v1.ControllerRevision, "controllerrevisions", has_status=False),
    kind(apps_v1.DaemonSet, "daemonsets", short="ds", categories="all"),
    kind(apps_v1.ReplicaSet, "replicasets", short="rs", categories="all", scale=ScalePaths()),
    kind(apps_v1.StatefulSet, "statefulsets", short="sts", categories="all", scale=ScalePaths()),
    kind(
        autoscaling_v2.HorizontalPodAutoscaler,
        "horizontalpodautoscalers",
        short="hpa",
        categories="all",
    ),
    kind(batch_v1.CronJob, "cronjobs", short="cj", categories="all"),
    kind(batch_v1.Job, "jobs", categories="all"),
    kind(
        certificates_v1.CertificateSigningRequest,
        "certificatesigningrequests",
        cluster=True,
        short="csr",
    ),
    kind(
        certificates_v1beta1.ClusterTrustBundle,
        "clustertrustbundles",
        cluster=True,
        has_status=False,
    ),
    kind(coordination_v1.Lease, "leases", has_status=False),
    kind(policy_v1.PodDisruptionBudget, "poddisruptionbudgets", short="pdb"),
    kind(
        scheduling_v1.PriorityClass, "priorityclasses", cluster=True, short="pc", has_status=False
    ),
    kind(storage_v1.StorageClass, "storageclasses", cluster=True, short="sc", has_status=False),
    kind(storage_v1.VolumeAttachment, "volumeattachments", cluster=True),
    kind(storage_v1.CSIDriver, "csidrivers", cluster=True, has_status=False),
    kind(storage_v1.CSINode, "csinodes", cluster=True, has_status=False),
    kind(storage_v1.CSIStorageCapacity, "csistoragecapacities", has_status=False),
    replace(
        kind(
            storage_v1.VolumeAttributesClass,
            "volumeattributesclasses",
            cluster=True,
            short="vac",
            has_status=False,
        ),
        conversion=FormerVersion("storage.k8s.io/v1beta1"),
    ),
    replace(
        kind(
            storagemigration_v1beta1.StorageVersionMigration,
            "storageversionmigrations",
            cluster=True,
        ),
        conversion=FormerVersion(
            "storagemigration.k8s.io/v1alpha1", storagemigration_v1beta1.change_from_v1alpha1
        ),
    ),
    kind(networking_v1.NetworkPolicy, "networkpolicies", short="netpol", has_status=False),
    kind(networking_v1.Ingress, "ingresses", short="ing"),
    kind(networking_v1.IngressClass, "ingressclasses", cluster=True, has_status=False),
    kind(networking_v1.ServiceCIDR, "servicecidrs", cluster=True),
    kind(networking_v1.IPAddress, "ipaddresses", cluster=True, short="ip", has_status=False),
    kind(flowcontrol_v1.FlowSchema, "flowschemas", cluster=True),
    kind(flowcontrol_v1.PriorityLevelConfiguration, "prioritylevelconfigurations", cluster=True),
    kind(node_v1.RuntimeClass, "runtimeclasses", cluster=True, has_status=False),
    kind(resource_v1.DeviceClass, "deviceclasses", cluster=True, has_status=False),
    kind(resource_v1.ResourceClaim, "resourceclaims"),
    kind(resource_v1.ResourceClaimTemplate, "resourceclaimtemplates", has_status=False),
    kind(resource_v1.ResourceSlice, "resourceslices", cluster=True, has_status=False),
    kind(rbac_v1.Role, "roles", has_status=False),
    kind(rbac_v1.RoleBinding, "rolebindings", has_status=False),
    kind(rbac_v1.ClusterRole, "clusterroles", cluster=True, has_status=False),
    kind(rbac_v1.ClusterRoleBinding, "clusterrolebindings", cluster=True, has_status=False),
    kind(
        apiextensions_v1.CustomResourceDefinition,
        "customresourcedefinitions",
        cluster=True,
        short="crd crds",
        categories="api-extensions",
    ),
    kind(apiregistration_v1.APIService, "apiservices", cluster=True, categories="api-extensions"),
)

# Further served versions of kinds above. They are stored in the versions above.
_OTHER_VERSIONS = (
    replace(
        kind(events_v1.Event, "events", short="ev", has_status=False),
        name="events",
        api_version="",
        conversion=events_v1.EventConversion(),
    ),
    replace(
        kind(
            autoscaling_v1.HorizontalPodAutoscaler,
            "horizontalpodautoscalers",
            short="hpa",
            categories="all",
        ),
        conversion=autoscaling_v1.AutoscalerConversion(),
    ),
)

BUILT_IN = Kinds((*_KINDS, *_OTHER_VERSIONS))
for _resource in BUILT_IN.served():
    _resource.model.resource = _resource  # type: ignore[assignment] # declared as a descriptor


def build_schemas() -> None:
    """Builds pydantic's schemas of all kinds, in 0.1 s.

    A process calls it before it forks: otherwise each of its children builds the schema of a kind
    when it first decodes such an object, in up to 30 ms.
    """
    for resource in BUILT_IN.resources():
        resource.model.model_rebuild()
