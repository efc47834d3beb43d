"""The default ClusterRoles of kube-controller-manager's controllers, and their bindings.

Each role belongs to a service account of kube-system with the role's last name. A manager that is
started with `--use-service-account-credentials` writes as these accounts, also against this server.

Source: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/controller_policy.go, Kubernetes 1.36, with
the feature gates of a default server, and with ClusterTrustBundle and StorageVersionMigrator, since
their kinds are served.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kcm.api.rbac_v1 import ClusterRole, ClusterRoleBinding
from kcm.apiserver.auth.policy import EVENTS, READ, RuleText, new_binding, new_role

_PREFIX = "system:controller:"
# Controllers that write no Events. The rules of all others end with `EVENTS`.
_WITHOUT_EVENTS = (
    "clusterrole-aggregation-controller",
    "legacy-service-account-token-cleaner",
    "namespace-controller",
    "pod-garbage-collector",
    "storage-version-migrator-controller",
)
# Rules by the controller's name.
_RULES: Mapping[str, Sequence[RuleText]] = {
    "attachdetach-controller": (
        ("list watch", "core", "persistentvolumeclaims persistentvolumes pods"),
        (READ, "core", "nodes"),
        ("patch update", "core", "nodes/status"),
        (f"create delete {READ}", "storage.k8s.io", "volumeattachments"),
        (READ, "storage.k8s.io", "csidrivers csinodes"),
    ),
    "certificate-controller": (
        (f"delete {READ}", "certificates.k8s.io", "certificatesigningrequests"),
        ("update", "certificates.k8s.io", "certificatesigningrequests/approval "
         "certificatesigningrequests/status"),
        ("approve", "certificates.k8s.io", "signers",
         "kubernetes.io/kube-apiserver-client-kubelet"),
        ("sign", "certificates.k8s.io", "signers",
         "kubernetes.io/kube-apiserver-client kubernetes.io/kube-apiserver-client-kubelet "
         "kubernetes.io/kubelet-serving kubernetes.io/legacy-unknown"),
        ("create", "authorization.k8s.io", "subjectaccessreviews"),
    ),
    "clusterrole-aggregation-controller": (
        (f"escalate patch update {READ}", "rbac.authorization.k8s.io", "clusterroles"),
    ),
    "cronjob-controller": (
        (f"update {READ}", "batch", "cronjobs"),
        (f"create delete patch update {READ}", "batch", "jobs"),
        ("update", "batch", "cronjobs/finalizers cronjobs/status"),
        ("delete list watch", "core", "pods"),
    ),
    "daemon-set-controller": (
        (READ, "apps extensions", "daemonsets"),
        ("update", "apps extensions", "daemonsets/finalizers daemonsets/status"),
        ("list watch", "core", "nodes"),
        ("create delete list patch watch", "core", "pods"),
        ("create", "core", "pods/binding"),
        (f"create delete patch update {READ}", "apps", "controllerrevisions"),
    ),
    "deployment-controller": (
        (f"update {READ}", "apps extensions", "deployments"),
        ("update", "apps extensions", "deployments/finalizers deployments/status"),
        (f"create delete patch update {READ}", "apps extensions", "replicasets"),
        (f"update {READ}", "core", "pods"),
    ),
    "device-taint-eviction-controller": (
        (f"delete {READ}", "core", "pods"),
        ("patch update", "core", "pods/status"),
        (READ, "resource.k8s.io", "deviceclasses resourceclaims resourceslices"),
    ),
    "disruption-controller": (
        (READ, "apps extensions", "deployments replicasets"),
        (READ, "core", "replicationcontrollers"),
        (READ, "policy", "poddisruptionbudgets"),
        (READ, "apps", "statefulsets"),
        ("update", "policy", "poddisruptionbudgets/status"),
        ("patch update", "core", "pods/status"),
        ("get", "*", "*/scale"),
    ),
    "endpoint-controller": (
        (READ, "core", "pods services"),
        (f"create delete update {READ}", "core", "endpoints"),
        ("create", "core", "endpoints/restricted"),
    ),
    "endpointslice-controller": (
        (READ, "core", "nodes pods services"),
        ("update", "core", "services/finalizers"),
        (f"create delete update {READ}", "discovery.k8s.io", "endpointslices"),
        ("create", "discovery.k8s.io", "endpointslices/restricted"),
    ),
    "endpointslicemirroring-controller": (
        (READ, "core", "endpoints services"),
        ("update", "core", "endpoints/finalizers services/finalizers"),
        (f"create delete update {READ}", "discovery.k8s.io", "endpointslices"),
        ("create", "discovery.k8s.io", "endpointslices/restricted"),
    ),
    "ephemeral-volume-controller": (
        (READ, "core", "pods"),
        ("update", "core", "pods/finalizers"),
        (f"create {READ}", "core", "persistentvolumeclaims"),
    ),
    "expand-controller": (
        (f"patch update {READ}", "core", "persistentvolumes"),
        ("patch update", "core", "persistentvolumeclaims/status"),
        (READ, "core", "persistentvolumeclaims"),
    ),
    "generic-garbage-collector": (
        (f"delete patch update {READ}", "*", "*"),
    ),
    "horizontal-pod-autoscaler": (
        (READ, "autoscaling", "horizontalpodautoscalers"),
        ("update", "autoscaling", "horizontalpodautoscalers/status"),
        ("get update", "*", "*/scale"),
        ("list watch", "core", "pods"),
        ("list watch", "metrics.k8s.io", "pods"),
        (READ, "custom.metrics.k8s.io", "*"),
        (READ, "external.metrics.k8s.io", "*"),
    ),
    "job-controller": (
        (f"patch update {READ}", "batch", "jobs"),
        ("update", "batch", "jobs/finalizers jobs/status"),
        ("create delete list patch watch", "core", "pods"),
    ),
    "kube-apiserver-serving-clustertrustbundle-publisher": (
        ("attest", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-serving"),
        ("create delete list update watch", "certificates.k8s.io", "clustertrustbundles"),
    ),
    "legacy-service-account-token-cleaner": (
        ("get", "core", "configmaps", "kube-apiserver-legacy-service-account-token-tracking"),
        ("delete patch", "core", "secrets"),
    ),
    "namespace-controller": (
        (f"delete {READ}", "core", "namespaces"),
        ("update", "core", "namespaces/finalize namespaces/status"),
        (f"delete deletecollection {READ}", "*", "*"),
    ),
    "node-controller": (
        (f"delete patch update {READ}", "core", "nodes"),
        ("patch update", "core", "nodes/status pods/status"),
        (f"delete {READ}", "core", "pods"),
    ),
    "persistent-volume-binder": (
        (f"create delete update {READ}", "core", "persistentvolumes"),
        ("update", "core", "persistentvolumeclaims/status persistentvolumes/status"),
        (f"update {READ}", "core", "persistentvolumeclaims"),
        (f"create delete {READ}", "core", "pods"),
        (READ, "storage.k8s.io", "storageclasses"),
        ("list watch", "core", "nodes"),
        ("watch", "core", "events"),
    ),
    "pod-garbage-collector": (
        ("delete list watch", "core", "pods"),
        (READ, "core", "nodes"),
        ("patch", "core", "pods/status"),
    ),
    "pv-protection-controller": (
        (f"update {READ}", "core", "persistentvolumes"),
    ),
    "pvc-protection-controller": (
        (f"update {READ}", "core", "persistentvolumeclaims"),
        ("update", "core", "persistentvolumeclaims/status"),
        (READ, "core", "pods"),
    ),
    "replicaset-controller": (
        (f"update {READ}", "apps extensions", "replicasets"),
        ("update", "apps extensions", "replicasets/finalizers replicasets/status"),
        ("create delete list patch watch", "core", "pods"),
    ),
    "replication-controller": (
        (f"update {READ}", "core", "replicationcontrollers"),
        ("update", "core", "replicationcontrollers/finalizers replicationcontrollers/status"),
        ("create delete list patch watch", "core", "pods"),
    ),
    "resource-claim-controller": (
        (READ, "core", "pods"),
        ("update", "core", "pods/finalizers"),
        (f"create delete {READ}", "resource.k8s.io", "resourceclaims"),
        ("patch update", "resource.k8s.io", "resourceclaims resourceclaims/binding "
         "resourceclaims/status"),
        ("patch update", "core", "pods/status"),
    ),
    "resourcequota-controller": (
        ("list watch", "*", "*"),
        ("update", "core", "resourcequotas/status"),
    ),
    "root-ca-cert-publisher": (
        ("create update", "core", "configmaps"),
    ),
    "route-controller": (
        ("list watch", "core", "nodes"),
        ("patch", "core", "nodes/status"),
    ),
    "selinux-warning-controller": (
        (READ, "core", "persistentvolumeclaims persistentvolumes pods"),
        (READ, "storage.k8s.io", "csidrivers"),
    ),
    "service-account-controller": (
        ("create", "core", "serviceaccounts"),
    ),
    "service-cidrs-controller": (
        (f"patch update {READ}", "networking.k8s.io", "servicecidrs"),
        ("patch update", "networking.k8s.io", "servicecidrs/finalizers servicecidrs/status"),
        (READ, "networking.k8s.io", "ipaddresses"),
    ),
    "service-controller": (
        (READ, "core", "services"),
        ("patch update", "core", "services/status"),
        ("list watch", "core", "nodes"),
    ),
    "statefulset-controller": (
        ("list watch", "core", "pods"),
        (READ, "apps", "statefulsets"),
        ("update", "apps", "statefulsets/finalizers statefulsets/status"),
        ("create delete get patch update", "core", "pods"),
        (f"create delete patch update {READ}", "apps", "controllerrevisions"),
        (f"create {READ}", "core", "persistentvolumeclaims"),
        ("delete update", "core", "persistentvolumeclaims"),
        ("update", "core", "pods/finalizers"),
    ),
    "storage-version-migrator-controller": (
        ("create list patch", "*", "*"),
        ("get", "apiextensions.k8s.io", "customresourcedefinitions"),
        ("patch", "apiextensions.k8s.io", "customresourcedefinitions/status"),
        ("update", "storagemigration.k8s.io", "storageversionmigrations/status"),
    ),
    "ttl-after-finished-controller": (
        (f"delete {READ}", "batch", "jobs"),
    ),
    "ttl-controller": (
        ("list patch update watch", "core", "nodes"),
    ),
    "validatingadmissionpolicy-status-controller": (
        (READ, "admissionregistration.k8s.io", "validatingadmissionpolicies"),
        ("get patch update", "admissionregistration.k8s.io", "validatingadmissionpolicies/status "),
    ),
    "volumeattributesclass-protection-controller": (
        (READ, "core", "persistentvolumeclaims persistentvolumes"),
        (f"update {READ}", "storage.k8s.io", "volumeattributesclasses"),
    ),
}  # fmt: skip


def controller_roles() -> list[ClusterRole]:
    """Returns the ClusterRole of each controller."""
    return [
        new_role(_PREFIX + name, rules if name in _WITHOUT_EVENTS else (*rules, EVENTS))
        for name, rules in _RULES.items()
    ]


def controller_role_bindings() -> list[ClusterRoleBinding]:
    """Returns a binding for each controller's service account."""
    return [new_binding(_PREFIX + name, [f"ServiceAccount kube-system/{name}"]) for name in _RULES]
