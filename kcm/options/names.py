"""The table of all controllers of Kubernetes, whether kcm has them or not.

Source: cmd/kube-controller-manager/names/controller_names.go, the descriptors in
cmd/kube-controller-manager/app/*.go, cloud-provider/names, and the types of
pkg/controller/apis/config, Kubernetes 1.36.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KnownController:
    """One controller of upstream's table."""

    name: str
    alias: str = ""  # its name before 1.27
    section: str = ""  # its section of KubeControllerManagerConfiguration
    disabled_by_default: bool = False
    cloud: bool = False  # needs --cloud-provider
    first: bool = False  # started before all others, which need the objects that it creates


_Name = KnownController

KNOWN: tuple[KnownController, ...] = (
    _Name("serviceaccount-token-controller", "serviceaccount-token", "saController", first=True),
    _Name("endpoints-controller", "endpoint", "endpointController"),
    _Name("endpointslice-controller", "endpointslice", "endpointSliceController"),
    _Name(
        "endpointslice-mirroring-controller",
        "endpointslicemirroring",
        "endpointSliceMirroringController",
    ),
    _Name("replicationcontroller-controller", "replicationcontroller", "replicationController"),
    _Name("pod-garbage-collector-controller", "podgc", "podGCController"),
    _Name("resourcequota-controller", "resourcequota", "resourceQuotaController"),
    _Name("namespace-controller", "namespace", "namespaceController"),
    _Name("serviceaccount-controller", "serviceaccount"),
    _Name("garbage-collector-controller", "garbagecollector", "garbageCollectorController"),
    _Name("daemonset-controller", "daemonset", "daemonSetController"),
    _Name("job-controller", "job", "jobController"),
    _Name("deployment-controller", "deployment", "deploymentController"),
    _Name("replicaset-controller", "replicaset", "replicaSetController"),
    _Name("horizontal-pod-autoscaler-controller", "horizontalpodautoscaling", "hpaController"),
    _Name("disruption-controller", "disruption"),
    _Name("statefulset-controller", "statefulset", "statefulSetController"),
    _Name("cronjob-controller", "cronjob", "cronJobController"),
    _Name("certificatesigningrequest-signing-controller", "csrsigning", "csrSigningController"),
    _Name("certificatesigningrequest-approving-controller", "csrapproving"),
    _Name("certificatesigningrequest-cleaner-controller", "csrcleaner"),
    _Name("ttl-controller", "ttl"),
    _Name("bootstrap-signer-controller", "bootstrapsigner", disabled_by_default=True),
    _Name("token-cleaner-controller", "tokencleaner", disabled_by_default=True),
    _Name("node-ipam-controller", "nodeipam", "nodeIPAMController"),
    _Name("node-lifecycle-controller", "nodelifecycle", "nodeLifecycleController"),
    _Name("service-lb-controller", "service", "serviceController", cloud=True),
    _Name("node-route-controller", "route", cloud=True),
    _Name("cloud-node-lifecycle-controller", "cloud-node-lifecycle", cloud=True),
    _Name("cloud-node-controller", "cloud-node", cloud=True),
    _Name(
        "persistentvolume-binder-controller",
        "persistentvolume-binder",
        "persistentVolumeBinderController",
    ),
    _Name("persistentvolume-attach-detach-controller", "attachdetach", "attachDetachController"),
    _Name("persistentvolume-expander-controller", "persistentvolume-expander"),
    _Name("clusterrole-aggregation-controller", "clusterrole-aggregation"),
    _Name("persistentvolumeclaim-protection-controller", "pvc-protection"),
    _Name("persistentvolume-protection-controller", "pv-protection"),
    _Name("volumeattributesclass-protection-controller"),
    _Name("ttl-after-finished-controller", "ttl-after-finished", "ttlAfterFinishedController"),
    _Name("root-ca-certificate-publisher-controller", "root-ca-cert-publisher"),
    _Name("kube-apiserver-serving-clustertrustbundle-publisher-controller"),
    _Name("ephemeral-volume-controller", "ephemeral-volume", "ephemeralVolumeController"),
    _Name("storageversion-garbage-collector-controller", "storage-version-gc"),
    _Name("resourceclaim-controller", "resource-claim-controller"),
    _Name("device-taint-eviction-controller"),
    _Name(
        "legacy-serviceaccount-token-cleaner-controller",
        "legacy-service-account-token-cleaner",
        "legacySATokenCleaner",
    ),
    _Name(
        "validatingadmissionpolicy-status-controller",
        section="validatingAdmissionPolicyStatusController",
    ),
    _Name("taint-eviction-controller"),
    _Name("service-cidr-controller"),
    _Name("storage-version-migrator-controller"),
    _Name("selinux-warning-controller", disabled_by_default=True),
    _Name("podcertificaterequest-cleaner-controller"),
    _Name("podgroup-protection-controller"),
    _Name("resourcepoolstatusrequest-controller"),
)

BY_NAME = {known.name: known for known in KNOWN}

# The service accounts in kube-system of those controllers whose accounts have other names, "" for
# the identity of the manager itself. Source: the clients that cmd/kube-controller-manager/app and
# staging/src/k8s.io/cloud-provider/app/controllermanager.go build.
ACCOUNTS = {
    "serviceaccount-token-controller": "",
    "endpoints-controller": "endpoint-controller",
    "endpointslice-mirroring-controller": "endpointslicemirroring-controller",
    "replicationcontroller-controller": "replication-controller",
    "pod-garbage-collector-controller": "pod-garbage-collector",
    "serviceaccount-controller": "service-account-controller",
    "garbage-collector-controller": "generic-garbage-collector",
    "daemonset-controller": "daemon-set-controller",
    "horizontal-pod-autoscaler-controller": "horizontal-pod-autoscaler",
    "certificatesigningrequest-signing-controller": "certificate-controller",
    "certificatesigningrequest-approving-controller": "certificate-controller",
    "certificatesigningrequest-cleaner-controller": "certificate-controller",
    "bootstrap-signer-controller": "bootstrap-signer",
    "token-cleaner-controller": "token-cleaner",
    "node-ipam-controller": "node-controller",
    "node-lifecycle-controller": "node-controller",
    "taint-eviction-controller": "node-controller",
    "cloud-node-controller": "node-controller",
    "cloud-node-lifecycle-controller": "node-controller",
    "node-route-controller": "route-controller",
    "service-lb-controller": "service-controller",
    "persistentvolume-binder-controller": "persistent-volume-binder",
    "persistentvolume-attach-detach-controller": "attachdetach-controller",
    "persistentvolume-expander-controller": "expand-controller",
    "persistentvolumeclaim-protection-controller": "pvc-protection-controller",
    "persistentvolume-protection-controller": "pv-protection-controller",
    "root-ca-certificate-publisher-controller": "root-ca-cert-publisher",
    "kube-apiserver-serving-clustertrustbundle-publisher-controller": (
        "kube-apiserver-serving-clustertrustbundle-publisher"
    ),
    "legacy-serviceaccount-token-cleaner-controller": "legacy-service-account-token-cleaner",
    "resourceclaim-controller": "resource-claim-controller",
    "service-cidr-controller": "service-cidrs-controller",
}


def find_account(controller: str) -> str:
    """Returns the service account of a controller, "" for one that has the manager's identity."""
    return ACCOUNTS.get(controller, controller if controller in BY_NAME else "")


# By flag, the fields of the configuration whose names are not the flag's in camelCase.
CONFIG_FIELDS = {
    "disable-attach-detach-reconcile-sync": "disableAttachDetachReconcilerSync",
    "attach-detach-reconcile-sync-period": "reconcilerSyncLoopPeriod",
    "concurrent-serviceaccount-token-syncs": "concurrentSATokenSyncs",
    "root-ca-file": "rootCAFile",
    "legacy-service-account-token-clean-up-period": "cleanUpPeriod",
    "concurrent-replicaset-syncs": "concurrentRSSyncs",
    "terminated-pod-gc-threshold": "terminatedPodGCThreshold",
    "concurrent-validating-admission-policy-status-syncs": "concurrentPolicySyncs",
    "concurrent-gc-syncs": "concurrentGCSyncs",
    "concurrent-resourceclaim-syncs": "concurrentSyncs",
    "concurrent-ttl-after-finished-syncs": "concurrentTTLSyncs",
    "event-ttl": "eventTTL",
    "horizontal-pod-autoscaler-downscale-stabilization": (
        "horizontalPodAutoscalerDownscaleStabilizationWindow"
    ),
    "horizontal-pod-autoscaler-cpu-initialization-period": (
        "horizontalPodAutoscalerCPUInitializationPeriod"
    ),
}


def camel_case(name: str) -> str:
    """Returns a name such as `replicaset-controller` or `min_resync_period` in camelCase."""
    first, *rest = name.replace("_", "-").split("-")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)
