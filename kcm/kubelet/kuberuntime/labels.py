"""What the kubelet notes at sandboxes and containers, to find them again.

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


def pod_labels(pod: Pod) -> dict[str, str]:
    """Of a sandbox: the pod's own labels, and who it is."""
    return {
        **pod.labels,
        POD_NAME: pod.name or "",
        POD_NAMESPACE: pod.namespace or "",
        POD_UID: pod.uid or "",
    }


def container_labels(pod: Pod, container: Container) -> dict[str, str]:
    return {
        POD_NAME: pod.name or "",
        POD_NAMESPACE: pod.namespace or "",
        POD_UID: pod.uid or "",
        CONTAINER_NAME: container.name,
    }


def container_annotations(pod: Pod, container: Container, restarts: int) -> dict[str, str]:
    """What ending a container takes, for when its pod is no longer known."""
    found = {CONTAINER_HASH: hash_of(container), RESTART_COUNT: str(restarts)}
    grace = pod.spec.termination_grace_period_seconds
    if grace is not None:
        found[POD_GRACE] = str(grace)
    if container.lifecycle is not None and container.lifecycle.pre_stop is not None:
        hook = container.lifecycle.pre_stop
        found[PRE_STOP] = hook.model_dump_json(by_alias=True, exclude_none=True)
    return found


def hash_of(container: Container) -> str:
    """Changes when the container has to be made anew: its name and its image are what may not
    change under a running one."""
    return hash_of_image(container.name, container.image or "")


@lru_cache(maxsize=4096)
def hash_of_image(name: str, image: str) -> str:
    """See `hash_of`."""
    text = json.dumps([name, image])
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def number(annotations: Mapping[str, str], name: str) -> int | None:
    """A number among annotations, None when there is none."""
    text = annotations.get(name, "")
    return int(text) if text.lstrip("-").isdigit() else None
