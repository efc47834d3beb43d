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


_Known = KnownController

KNOWN: tuple[KnownController, ...] = (
    _Known("serviceaccount-token-controller", "serviceaccount-token", "saController", first=True),
    _Known("endpoints-controller", "endpoint", "endpointController"),
    _Known("endpointslice-controller", "endpointslice", "endpointSliceController"),
    _Known(
        "endpointslice-mirroring-controller",
        "endpointslicemirroring",
        "endpointSliceMirroringController",
    ),
    _Known("replicationcontroller-controller", "replicationcontroller", "replicationController"),
    _Known("pod-garbage-collector-controller", "podgc", "podGCController"),
    _Known("resourcequota-controller", "resourcequota", "resourceQuotaController"),
    _Known("namespace-controller", "namespace", "namespaceController"),
    _Known("serviceaccount-controller", "serviceaccount"),
    _Known("garbage-collector-controller", "garbagecollector", "garbageCollectorController"),
    _Known("daemonset-controller", "daemonset", "daemonSetController"),
    _Known("job-controller", "job", "jobController"),
    _Known("deployment-controller", "deployment", "deploymentController"),
    _Known("replicaset-controller", "replicaset", "replicaSetController"),
    _Known("horizontal-pod-autoscaler-controller", "horizontalpodautoscaling", "hpaController"),
    _Known("disruption-controller", "disruption"),
    _Known("statefulset-controller", "statefulset", "statefulSetController"),
    _Known("cronjob-controller", "cronjob", "cronJobController"),
    _Known("certificatesigningrequest-signing-controller", "csrsigning", "csrSigningController"),
    _Known("certificatesigningrequest-approving-controller", "csrapproving"),
    _Known("certificatesigningrequest-cleaner-controller", "csrcleaner"),
    _Known("ttl-controller", "ttl"),
    _Known("bootstrap-signer-controller", "bootstrapsigner", disabled_by_default=True),
    _Known("token-cleaner-controller", "tokencleaner", disabled_by_default=True),
    _Known("node-ipam-controller", "nodeipam", "nodeIPAMController"),
    _Known("node-lifecycle-controller", "nodelifecycle", "nodeLifecycleController"),
    _Known("service-lb-controller", "service", "serviceController", cloud=True),
    _Known("node-route-controller", "route", cloud=True),
    _Known("cloud-node-lifecycle-controller", "cloud-node-lifecycle", cloud=True),
    _Known("cloud-node-controller", "cloud-node", cloud=True),
    _Known(
        "persistentvolume-binder-controller",
        "persistentvolume-binder",
        "persistentVolumeBinderController",
    ),
    _Known("persistentvolume-attach-detach-controller", "attachdetach", "attachDetachController"),
    _Known("persistentvolume-expander-controller", "persistentvolume-expander"),
    _Known("clusterrole-aggregation-controller", "clusterrole-aggregation"),
    _Known("persistentvolumeclaim-protection-controller", "pvc-protection"),
    _Known("persistentvolume-protection-controller", "pv-protection"),
    _Known("volumeattributesclass-protection-controller"),
    _Known("ttl-after-finished-controller", "ttl-after-finished", "ttlAfterFinishedController"),
    _Known("root-ca-certificate-publisher-controller", "root-ca-cert-publisher"),
    _Known("kube-apiserver-serving-clustertrustbundle-publisher-controller"),
    _Known("ephemeral-volume-controller", "ephemeral-volume", "ephemeralVolumeController"),
    _Known("storageversion-garbage-collector-controller", "storage-version-gc"),
    _Known("resourceclaim-controller", "resource-claim-controller"),
    _Known("device-taint-eviction-controller"),
    _Known(
        "legacy-serviceaccount-token-cleaner-controller",
        "legacy-service-account-token-cleaner",
        "legacySATokenCleaner",
    ),
    _Known(
        "validatingadmissionpolicy-status-controller",
        section="validatingAdmissionPolicyStatusController",
    ),
    _Known("taint-eviction-controller"),
    _Known("service-cidr-controller"),
    _Known("storage-version-migrator-controller"),
    _Known("selinux-warning-controller", disabled_by_default=True),
    _Known("podcertificaterequest-cleaner-controller"),
    _Known("podgroup-protection-controller"),
    _Known("resourcepoolstatusrequest-controller"),
)

BY_NAME = {known.name: known for known in KNOWN}

# The service accounts in kube-system of those controllers whose accounts have other names, "" for
# the identity of the manager itself. Source: the clients that cmd/kube-controller-manager/app
# builds.
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
