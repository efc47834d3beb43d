"""The labels and annotations by which the kubelet recognizes its sandboxes and containers.

Source: pkg/kubelet/kuberuntime/labels.go and pkg/kubelet/container/helpers.go, Kubernetes 1.33.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache

from kcm.api.core_v1 import Container, Pod

POD_NAME = "io.kubernetes.pod.name"
POD_NAMESPACE = "io.kubernetes.pod.namespace"
POD_UID = "io.kubernetes.pod.uid"
CONTAINER_NAME = "io.kubernetes.container.name"
CONTAINER_HASH = "io.kubernetes.container.hash"
RESTART_COUNT = "io.kubernetes.container.restartCount"
POD_GRACE = "io.kubernetes.pod.terminationGracePeriod"
PRE_STOP = "io.kubernetes.container.preStopHandler"
PORTS = "io.kubernetes.container.ports"
MESSAGE_PATH = "io.kubernetes.container.terminationMessagePath"
MESSAGE_POLICY = "io.kubernetes.container.terminationMessagePolicy"


def pod_labels(pod: Pod) -> dict[str, str]:
    """Returns a sandbox's labels: the pod's own, and those that identify the pod."""
    return {
        **pod.labels,
        POD_NAME: pod.name or "",
        POD_NAMESPACE: pod.namespace or "",
        POD_UID: pod.uid or "",
    }


def container_labels(pod: Pod, container: Container) -> dict[str, str]:
    """Returns the labels that identify a container and its pod."""
    return {
        POD_NAME: pod.name or "",
        POD_NAMESPACE: pod.namespace or "",
        POD_UID: pod.uid or "",
        CONTAINER_NAME: container.name,
    }


def container_annotations(pod: Pod, container: Container, restarts: int) -> dict[str, str]:
    """Returns what is needed to kill the container when its pod is unknown, to read its
    termination message, and its hash.
    """
    annotations = {
        CONTAINER_HASH: hash_of(container),
        RESTART_COUNT: str(restarts),
        MESSAGE_PATH: container.termination_message_path or "",
        MESSAGE_POLICY: container.termination_message_policy or "",
    }
    grace = pod.spec.termination_grace_period_seconds
    if grace is not None:
        annotations[POD_GRACE] = str(grace)
    if container.lifecycle is not None and container.lifecycle.pre_stop is not None:
        hook = container.lifecycle.pre_stop
        annotations[PRE_STOP] = hook.model_dump_json(by_alias=True, exclude_none=True)
    return annotations


def hash_of(container: Container) -> str:
    """Returns a hash of the container's name and image.

    A running container is replaced when the hash changes.
    """
    return hash_of_image(container.name, container.image or "")


@lru_cache(maxsize=4096)
def hash_of_image(name: str, image: str) -> str:
    """Returns `hash_of` for a container with that name and image."""
    text = json.dumps([name, image])
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def number(annotations: Mapping[str, str], name: str) -> int | None:
    """Returns the number in an annotation, or None if there is none."""
    text = annotations.get(name, "")
    return int(text) if text.lstrip("-").isdigit() else None
