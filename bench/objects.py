"""The objects that are measured: an ordinary web server's ReplicaSet and its pods."""

from __future__ import annotations

import uuid

from kcm.api import codec, defaults
from kcm.api.apps_v1 import ReplicaSet
from kcm.api.core_v1 import Pod
from kcm.reconcile.pods import pod_from_template

_LABELS = {"app": "web", "tier": "front"}


def replica_set(name: str = "web", replicas: int = 0) -> ReplicaSet:
    """A ReplicaSet as a person would write it."""
    obj = codec.decode(
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
                                "name": "web",
                                "image": "nginx:1.25",
                                "ports": [{"containerPort": 80}],
                                "env": [{"name": "MODE", "value": "production"}],
                                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                            }
                        ]
                    },
                },
            },
        }
    )
    assert isinstance(obj, ReplicaSet)
    return obj


def pod_of_a_set() -> Pod:
    """What the ReplicaSet controller creates, before the store names it."""
    owner = defaults.apply(replica_set()).with_metadata(uid=str(uuid.uuid4()))
    pod = pod_from_template(owner.spec.template, owner)
    assert isinstance(pod, Pod)
    return pod
