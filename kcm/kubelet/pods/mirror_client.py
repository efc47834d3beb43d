"""Mirror pods: how static pods show in the API.

Source: pkg/kubelet/pod/mirror_client.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from kcm import errors
from kcm.api import scheme
from kcm.api.core_v1 import Node, Pod
from kcm.apimachinery.meta_v1 import OwnerReference
from kcm.kubelet.types import HASH_ANNOTATION, MIRROR_ANNOTATION, full_name
from kcm.store import DeleteOptions
from kcm.store.objects import ObjectStore

log = structlog.get_logger("kcm.kubelet")

PODS = scheme.by_name("pods")


class MirrorClient:
    """Writes mirrors; while the store is away, nothing, and the next sync tries again."""

    def __init__(self, store: ObjectStore, node: Callable[[], Node | None]) -> None:
        self._store = store
        self._node = node

    def create(self, pod: Pod) -> bool:
        """Make the mirror of a static pod; whether it was made. Raises: Temporary."""
        node = self._node()
        if node is None or not node.uid:
            log.info("No mirror pod yet: the node is not registered", pod=pod.key)
            return False
        owner = OwnerReference(
            api_version="v1", kind="Node", name=node.name or "", uid=node.uid, controller=True
        )
        mark = pod.annotations.get(HASH_ANNOTATION, "")
        mirror = pod.with_metadata(
            uid=None,
            annotations={**pod.annotations, MIRROR_ANNOTATION: mark},
            owner_references=[owner],
        )
        try:
            self._store.write([self._store.creation(mirror)])[0].stored()
        except errors.AlreadyExists:
            return True
        except errors.ApiError as error:
            log.error("Failed creating a mirror pod", pod=full_name(pod), error=str(error))
            return False
        return True

    def delete(self, mirror: Pod) -> bool:
        """Delete a mirror, at once; whether it is gone. Raises: Temporary."""
        options = DeleteOptions(grace_period_seconds=0, uid=mirror.uid or "")
        found = self._store.get_all([(PODS, mirror.key)])[0]
        if found is None or found.uid != mirror.uid:
            return True
        item = self._store.deletion(found, options)
        return item is None or self._store.write([item])[0].ok
