"""Creates and deletes mirror pods, which show static pods in the API.

Source: pkg/kubelet/pod/mirror_client.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from kcm import errors
from kcm.api.core_v1 import Node, Pod
from kcm.apimachinery.meta_v1 import OwnerReference
from kcm.kubelet.types import HASH_ANNOTATION, MIRROR_ANNOTATION, full_name
from kcm.store import DeleteOptions
from kcm.store.objects import ObjectStore

log = structlog.get_logger("kcm.kubelet")

PODS = Pod.resource


class MirrorClient:
    """Creates and deletes the mirror pods of one node."""

    def __init__(self, store: ObjectStore, get_node: Callable[[], Node | None]) -> None:
        self._store = store
        self._get_node = get_node

    def create(self, pod: Pod) -> bool:
        """Creates the mirror of a static pod; returns whether it exists now. Raises Temporary."""
        node = self._get_node()
        if node is None or not node.uid:
            log.info("No mirror pod yet: the node is not registered", pod=pod.key)
            return False
        owner = OwnerReference(
            api_version="v1", kind="Node", name=node.name or "", uid=node.uid, controller=True
        )
        pod_hash = pod.annotations.get(HASH_ANNOTATION, "")
        mirror = pod.with_metadata(
            uid=None,
            annotations={**pod.annotations, MIRROR_ANNOTATION: pod_hash},
            owner_references=[owner],
        )
        try:
            self._store.write([self._store.build_create(mirror)])[0].get_stored()
        except errors.AlreadyExists:
            return True
        except errors.ApiError as error:
            log.error("Failed creating a mirror pod", pod=full_name(pod), error=str(error))
            return False
        return True

    def delete(self, mirror: Pod) -> bool:
        """Deletes a mirror without a grace period; returns whether it is gone. Raises Temporary."""
        options = DeleteOptions(grace_period_seconds=0, uid=mirror.uid or "")
        stored = self._store.find(PODS, mirror.key)
        if stored is None or stored.uid != mirror.uid:
            return True
        item = self._store.build_delete(stored, options)
        return item is None or self._store.write([item])[0].ok
