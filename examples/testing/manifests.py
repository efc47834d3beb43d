"""Objects that several recipes begin with."""

from typing import Any

Json = dict[str, Any]

MERGE = {"content-type": "application/merge-patch+json"}
PAUSE = {"name": "main", "image": "registry.k8s.io/pause:3.10"}


def config_map(name: str, **metadata: object) -> Json:
    """Returns a ConfigMap that counts from zero."""
    meta = {"name": name, **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"count": "0"}}


def pod(name: str, **annotations: str) -> Json:
    """Returns a Pod. The annotations say what it does: `run_for="1s"`."""
    script = {
        f"simulation.kcm.dev/{key.replace('_', '-')}": annotations[key] for key in annotations
    }
    meta = {"name": name, "labels": {"app": name}, "annotations": script}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [PAUSE]}}


def deployment(name: str, replicas: int, **annotations: str) -> Json:
    """Returns a Deployment. The annotations say what its pods do: `outcome="never-ready"`."""
    template = pod(name, **annotations)
    del template["metadata"]["name"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "progressDeadlineSeconds": 60,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": template["metadata"], "spec": template["spec"]},
        },
    }


def crd(storage: str, *versions: str) -> Json:
    """Returns the CustomResourceDefinition of recipes, which stores objects as `storage`."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "dishes.cook.example.com"},
        "spec": {
            "group": "cook.example.com",
            "scope": "Namespaced",
            "names": {"plural": "dishes", "singular": "dish", "kind": "Dish"},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == storage,
                    "schema": {"openAPIV3Schema": schema},
                }
                for version in versions
            ],
        },
    }


def webhook(namespace: str, policy: str) -> Json:
    """Returns a webhook at which nobody listens, asked about the ConfigMaps of a namespace."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"checks-of-{namespace}"},
        "webhooks": [
            {
                "name": "check.example.com",
                "clientConfig": {"url": "https://127.0.0.1:9/"},
                "failurePolicy": policy,
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "resources": ["configmaps"],
                        "operations": ["CREATE"],
                    }
                ],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }
