"""Builds the objects of measurements: a web server's ReplicaSet, Deployment and pods, and a Job."""

from __future__ import annotations

import json
import uuid
from typing import Any

from kcm.api import codec
from kcm.api.apps_v1 import Deployment, ReplicaSet
from kcm.api.batch_v1 import Job
from kcm.api.core_v1 import Pod
from kcm.helpers.pods import pod_from_template
from kcm.kinds import defaults

_LABELS = {"app": "web", "tier": "front"}
_CONTAINER = {
    "name": "web",
    "image": "nginx:1.25",
    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
}


def replica_set(name: str = "web", replicas: int = 0) -> ReplicaSet:
    """Returns a ReplicaSet of web servers, without defaults."""
    return ReplicaSet.model_validate(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {**_LABELS, "set": name}},
                "template": {
                    "metadata": {"labels": {**_LABELS, "set": name}},
                    "spec": {
                        "containers": [
                            {
                                **_CONTAINER,
                                "ports": [{"containerPort": 80}],
                                "env": [{"name": "MODE", "value": "production"}],
                            }
                        ]
                    },
                },
            },
        }
    )


def deployment(name: str, replicas: int) -> Deployment:
    """Returns a Deployment with the pods of `replica_set`."""
    spec = replica_set(name, replicas).spec
    return Deployment.model_validate(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": "default"},
            "spec": json.loads(codec.encode(spec)),
        }
    )


def job(name: str, completions: int, parallelism: int) -> Job:
    """Returns a Job with that many completions and that parallelism."""
    return Job.model_validate(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "completions": completions,
                "parallelism": parallelism,
                "template": {"spec": {"containers": [_CONTAINER], "restartPolicy": "Never"}},
            },
        }
    )


def pod_of_a_set() -> Pod:
    """Returns a pod as the ReplicaSet controller creates it, without a name."""
    owner = defaults.apply(replica_set()).with_metadata(uid=str(uuid.uuid4()))
    return pod_from_template(owner.spec.template, owner)


def web_pod(prefix: str, **spec: Any) -> Pod:
    """Returns a pod that belongs to no set.

    `spec` are the fields of its spec besides containers.
    """
    return Pod.model_validate(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "generateName": f"{prefix}-",
                "namespace": "default",
                "labels": {"app": prefix},
            },
            "spec": {"containers": [_CONTAINER], **spec},
        }
    )
