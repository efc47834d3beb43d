"""One valid object of every kind, as a user would write it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from kcm.api import codec
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.kinds import defaults
from tests.signing_requests import build_pem_authority, build_pem_request, encode

_LABELS = {"app": "web"}
_TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": _LABELS},
    "spec": {"containers": [{"name": "c", "image": "nginx:1.25"}]},
}
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_WORK = {"spec": {**_TEMPLATE["spec"], "restartPolicy": "Never"}}
_REQUEST = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
_RBAC = "rbac.authorization.k8s.io"
_RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
_USER = {"kind": "User", "name": "ada"}

# Everything but apiVersion, kind, metadata.name and metadata.namespace.
_WEBHOOKS = [
    {
        "name": "sample.example.com",
        "clientConfig": {"service": {"namespace": "default", "name": "sample"}},
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
            }
        ],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
    }
]
BODIES: dict[str, dict[str, Any]] = {
    "pods": {"spec": _TEMPLATE["spec"]},
    "nodes": {},
    "namespaces": {},
    "events": {
        "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"},
        "reason": "Started",
    },
    "configmaps": {"data": {"a.txt": "text"}, "binaryData": {"b.bin": "AAE="}},
    "secrets": {"stringData": {"password": "x"}},
    "services": {"spec": {"selector": _LABELS, "ports": [{"port": 80}]}},
    "replicationcontrollers": {"spec": {"template": _TEMPLATE}},
    "serviceaccounts": {"imagePullSecrets": [{"name": "registry"}]},
    "persistentvolumeclaims": {"spec": _CLAIM},
    "resourcequotas": {"spec": {"hard": {"pods": "100", "services": "10"}}},
    "limitranges": {
        "spec": {
            "limits": [
                {"type": "Container", "default": {"cpu": "500m"}},
                {"type": "PersistentVolumeClaim", "max": {"storage": "10Gi"}},
            ]
        }
    },
    "endpoints": {"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]},
    "endpointslices.discovery.k8s.io": {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"]}],
        "ports": [{"port": 80}],
    },
    "daemonsets.apps": {"spec": {"selector": {"matchLabels": _LABELS}, "template": _TEMPLATE}},
    "deployments.apps": {"spec": {"selector": {"matchLabels": _LABELS}, "template": _TEMPLATE}},
    "controllerrevisions.apps": {"data": {"spec": {}}, "revision": 1},
    "replicasets.apps": {"spec": {"selector": {"matchLabels": _LABELS}, "template": _TEMPLATE}},
    "statefulsets.apps": {
        "spec": {
            "selector": {"matchLabels": _LABELS},
            "template": _TEMPLATE,
            "serviceName": "web",
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": _CLAIM}],
        }
    },
    "horizontalpodautoscalers.autoscaling": {
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 5,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 50},
                    },
                }
            ],
        }
    },
    "cronjobs.batch": {
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": _WORK}}}
    },
    "jobs.batch": {
        "spec": {
            "selector": {"matchLabels": {"job-name": "sample"}},
            "manualSelector": True,
            "template": {**_WORK, "metadata": {"labels": {"job-name": "sample"}}},
        }
    },
    "certificatesigningrequests.certificates.k8s.io": {
        "spec": {
            "request": encode(build_pem_request()),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth"],
        }
    },
    "clustertrustbundles.certificates.k8s.io": {
        "spec": {"trustBundle": build_pem_authority()[0].decode()}
    },
    "storageversionmigrations.storagemigration.k8s.io": {
        "spec": {"resource": {"group": "example.com", "resource": "widgets"}}
    },
    "deviceclasses.resource.k8s.io": {"spec": {}},
    "resourceclaims.resource.k8s.io": {"spec": {"devices": {"requests": [_REQUEST]}}},
    "resourceclaimtemplates.resource.k8s.io": {
        "spec": {"spec": {"devices": {"requests": [_REQUEST]}}}
    },
    "resourceslices.resource.k8s.io": {
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "n", "resourceSliceCount": 1},
            "nodeName": "n",
            "devices": [{"name": "gpu-0"}],
        }
    },
    "mutatingadmissionpolicies.admissionregistration.k8s.io": {
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["apps"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["deployments"],
                    }
                ]
            },
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {"expression": "Object{spec: Object.spec{replicas: 1}}"},
                }
            ],
            "reinvocationPolicy": "Never",
        }
    },
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": {"spec": {"policyName": "p"}},
    "validatingadmissionpolicies.admissionregistration.k8s.io": {
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["apps"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": ["deployments"],
                    }
                ]
            },
            "validations": [{"expression": "object.spec.replicas <= 5"}],
        }
    },
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": {
        "spec": {"policyName": "sample", "validationActions": ["Deny"]}
    },
    "validatingwebhookconfigurations.admissionregistration.k8s.io": {"webhooks": _WEBHOOKS},
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": {"webhooks": _WEBHOOKS},
    "leases.coordination.k8s.io": {"spec": {"holderIdentity": "a"}},
    "poddisruptionbudgets.policy": {
        "spec": {"minAvailable": "50%", "selector": {"matchLabels": _LABELS}}
    },
    "priorityclasses.scheduling.k8s.io": {"value": 1000},
    "persistentvolumes": {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/data"},
        }
    },
    "podtemplates": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
    "storageclasses.storage.k8s.io": {"provisioner": "example.com/disks"},
    "volumeattachments.storage.k8s.io": {
        "spec": {
            "attacher": "disks.example.com",
            "nodeName": "node-1",
            "source": {"persistentVolumeName": "disk"},
        }
    },
    "csidrivers.storage.k8s.io": {"spec": {"attachRequired": False}},
    "csinodes.storage.k8s.io": {
        "spec": {
            "drivers": [
                {
                    "name": "disks.example.com",
                    "nodeID": "n-1",
                    "topologyKeys": ["example.com/zone"],
                    "allocatable": {"count": 20},
                }
            ]
        }
    },
    "csistoragecapacities.storage.k8s.io": {
        "storageClassName": "fast",
        "nodeTopology": {"matchLabels": {"example.com/zone": "a"}},
        "capacity": "10Gi",
    },
    "volumeattributesclasses.storage.k8s.io": {
        "driverName": "disks.example.com",
        "parameters": {"iops": "3000"},
    },
    "networkpolicies.networking.k8s.io": {
        "spec": {
            "podSelector": {"matchLabels": {"app": "web"}},
            "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"port": 80}]}],
        }
    },
    "ingresses.networking.k8s.io": {
        "spec": {
            "rules": [
                {
                    "host": "example.com",
                    "http": {
                        "paths": [
                            {
                                "path": "/",
                                "pathType": "Prefix",
                                "backend": {"service": {"name": "web", "port": {"number": 80}}},
                            }
                        ]
                    },
                }
            ]
        }
    },
    "ingressclasses.networking.k8s.io": {"spec": {"controller": "example.com/ingress"}},
    "servicecidrs.networking.k8s.io": {"spec": {"cidrs": ["10.1.0.0/24", "fd00::/112"]}},
    "ipaddresses.networking.k8s.io": {
        "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "web"}}
    },
    "flowschemas.flowcontrol.apiserver.k8s.io": {
        "spec": {
            "priorityLevelConfiguration": {"name": "workload-low"},
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [
                {
                    "subjects": [{"kind": "Group", "group": {"name": "system:authenticated"}}],
                    "resourceRules": [
                        {
                            "verbs": ["*"],
                            "apiGroups": ["*"],
                            "resources": ["*"],
                            "clusterScope": True,
                            "namespaces": ["*"],
                        }
                    ],
                    "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}],
                }
            ],
        }
    },
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": {
        "spec": {
            "type": "Limited",
            "limited": {
                "nominalConcurrencyShares": 100,
                "limitResponse": {"type": "Queue", "queuing": {"queues": 128}},
            },
        }
    },
    "runtimeclasses.node.k8s.io": {
        "handler": "sandbox",
        "overhead": {"podFixed": {"memory": "120Mi"}},
        "scheduling": {"nodeSelector": {"sandbox": "yes"}},
    },
    f"roles.{_RBAC}": {"rules": [_RULE]},
    f"rolebindings.{_RBAC}": {
        "roleRef": {"kind": "Role", "name": "reader"},
        "subjects": [_USER, {"kind": "ServiceAccount", "name": "robot"}],
    },
    f"clusterroles.{_RBAC}": {
        "rules": [_RULE, {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    },
    f"clusterrolebindings.{_RBAC}": {
        "roleRef": {"kind": "ClusterRole", "name": "reader"},
        "subjects": [_USER],
    },
    "apiservices.apiregistration.k8s.io": {
        "spec": {
            "group": "fruits.example.com",
            "version": "v1alpha1",
            "service": {"namespace": "default", "name": "fruits"},
            "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 1000,
            "versionPriority": 15,
        }
    },
    "customresourcedefinitions.apiextensions.k8s.io": {
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
        "status": {"storedVersions": ["v1"]},
    },
}
NAMES = {
    "apiservices.apiregistration.k8s.io": "v1alpha1.fruits.example.com",
    "customresourcedefinitions.apiextensions.k8s.io": "widgets.example.com",
    "ipaddresses.networking.k8s.io": "10.1.0.7",
}


def manifest(name: str, **changes: Any) -> dict[str, Any]:
    """Returns a manifest of the resource with this full name; changes replace top-level fields."""
    resource = BUILT_IN.by_name(name)
    metadata = {"name": NAMES.get(name, "sample")}
    if resource.namespaced:
        metadata["namespace"] = "default"
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**kind, "metadata": metadata, **deepcopy(BODIES[name]), **changes}


def sample(name: str, **changes: Any) -> Any:
    """Returns the object that `manifest` describes, defaulted."""
    obj: KubeObject = codec.decode(manifest(name, **changes), BUILT_IN, strict=True)
    return defaults.apply(obj)


def with_spec(name: str, **spec: Any) -> Any:
    """Returns the sample with these fields of its spec set."""
    return sample(name, spec={**BODIES[name]["spec"], **spec})
