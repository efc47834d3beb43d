"""One valid object of every kind, as a user would write it."""

from __future__ import annotations

from typing import Any

from kcm.api import codec, defaults, scheme
from kcm.api.meta_v1 import KubeObject

_LABELS = {"app": "web"}
_TEMPLATE = {
    "metadata": {"labels": _LABELS},
    "spec": {"containers": [{"name": "c", "image": "nginx:1.25"}]},
}
_RBAC = "rbac.authorization.k8s.io"
_RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
_USER = {"kind": "User", "name": "ada"}

# Everything but apiVersion, kind, metadata.name and metadata.namespace.
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
    "serviceaccounts": {"imagePullSecrets": [{"name": "registry"}]},
    "endpoints": {"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]},
    "endpointslices.discovery.k8s.io": {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"]}],
        "ports": [{"port": 80}],
    },
    "deployments.apps": {"spec": {"selector": {"matchLabels": _LABELS}, "template": _TEMPLATE}},
    "controllerrevisions.apps": {"data": {"spec": {}}, "revision": 1},
    "replicasets.apps": {"spec": {"selector": {"matchLabels": _LABELS}, "template": _TEMPLATE}},
    "leases.coordination.k8s.io": {"spec": {"holderIdentity": "a"}},
    "poddisruptionbudgets.policy": {
        "spec": {"minAvailable": "50%", "selector": {"matchLabels": _LABELS}}
    },
    "priorityclasses.scheduling.k8s.io": {"value": 1000},
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
        }
    },
}
NAMES = {"customresourcedefinitions.apiextensions.k8s.io": "widgets.example.com"}


def manifest(name: str, **changes: Any) -> dict[str, Any]:
    """A manifest of the resource with this full name; changes replace top-level fields."""
    resource = scheme.by_name(name)
    metadata = {"name": NAMES.get(name, "sample")}
    if resource.namespaced:
        metadata["namespace"] = "default"
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**kind, "metadata": metadata, **BODIES[name], **changes}


def sample(name: str, **changes: Any) -> Any:
    """The object that `manifest` describes, defaulted."""
    obj: KubeObject = codec.decode(manifest(name, **changes), strict=True)
    return defaults.apply(obj)


def with_spec(name: str, **spec: Any) -> Any:
    """The sample with these fields of its spec set."""
    return sample(name, spec={**BODIES[name]["spec"], **spec})
