"""Objects as clients send them."""

from __future__ import annotations

from typing import Any


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
    }


def replica_set(name: str, replicas: int = 2, image: str = "nginx:1") -> dict[str, Any]:
    labels = {"app": name}
    container = {
        "name": "c",
        "image": image,
        "env": [{"name": "A", "value": "1"}],
        "ports": [{"containerPort": 80}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
