"""Which objects belong to which node: those that the node's pods use.

    node <- pod <- secret, configmap, serviceaccount, resource claim, claim
                                                                      claim <- volume <- secret
    node <- volume attachment
    node <- resource slice

A lookup takes one step for most objects, two for volumes, and for a Secret one more for each volume
that refers to it. It never visits pods.

Source: plugin/pkg/auth/authorizer/node/graph.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kcm.api.core_v1 import PersistentVolume, Pod
from kcm.api.resource_v1.pod_claims import list_claim_names
from kcm.api.storage_v1 import claim_keys
from kcm.helpers.pod_references import config_map_names, node_secret_keys, secret_names

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
SECRET, CONFIG_MAP, ACCOUNT = "secrets", "configmaps", "serviceaccounts"
POD, CLAIM, VOLUME = "pods", "persistentvolumeclaims", "persistentvolumes"
ATTACHMENT = "volumeattachments"
RESOURCE_CLAIM, SLICE = "resourceclaims", "resourceslices"

Vertex = tuple[str, str]
"""The plural of a kind, and the key of an object (`namespace/name`, or a name)."""


@dataclass(frozen=True)
class _Owned:
    """A node, and what belongs to it because of one object that names it."""

    node: str
    vertices: frozenset[Vertex]


@dataclass(frozen=True)
class _Bound:
    """A volume's claim, and the Secrets that a node needs to mount the volume."""

    claim: str
    secrets: frozenset[str]


class Graph:
    """The objects of each node. It is not thread-safe."""

    def __init__(self) -> None:
        self._owned: dict[Vertex, _Owned] = {}
        # How many pods of each node use an object.
        self._users: dict[Vertex, dict[str, int]] = {}
        self._volumes: dict[str, _Bound] = {}
        self._volumes_by_secret: dict[str, set[str]] = {}

    def set_pod(self, key: str, pod: Pod | None) -> None:
        """Replaces what a pod gives its node. None stands for a pod that is gone.

        A mirror pod gives nothing but itself, since its node has made it.
        """
        vertices = {(POD, key)}
        if pod is not None and MIRROR_ANNOTATION not in pod.annotations:
            vertices |= set(_vertices_of(pod))
        self._set((POD, key), (pod.spec.node_name or "") if pod is not None else "", vertices)

    def set_node_of(self, kind: str, name: str, node: str) -> None:
        """Sets the node of a volume attachment or resource slice, "" for none."""
        self._set((kind, name), node, {(kind, name)})

    def set_volume(self, name: str, volume: PersistentVolume | None) -> None:
        """Sets a volume's claim and Secrets. None stands for a volume that is gone."""
        before = self._volumes.pop(name, None)
        for secret in before.secrets if before is not None else ():
            self._volumes_by_secret[secret].discard(name)
            if not self._volumes_by_secret[secret]:
                del self._volumes_by_secret[secret]
        claim = volume.spec.claim_ref if volume is not None else None
        if volume is None or claim is None:
            return
        secrets = frozenset(node_secret_keys(volume))
        self._volumes[name] = _Bound(f"{claim.namespace}/{claim.name}", secrets)
        for secret in secrets:
            self._volumes_by_secret.setdefault(secret, set()).add(name)

    def belongs(self, node: str, vertex: Vertex) -> bool:
        """Reports whether an object belongs to a node."""
        if node in self._users.get(vertex, ()):
            return True
        kind, key = vertex
        if kind == VOLUME:
            bound = self._volumes.get(key)
            return bound is not None and self.belongs(node, (CLAIM, bound.claim))
        if kind == SECRET:
            volumes = self._volumes_by_secret.get(key, ())
            return any(self.belongs(node, (VOLUME, volume)) for volume in volumes)
        return False

    def _set(self, owner: Vertex, node: str, vertices: Iterable[Vertex]) -> None:
        before = self._owned.pop(owner, None)
        for vertex in before.vertices if before is not None else ():
            assert before is not None
            users = self._users[vertex]
            users[before.node] -= 1
            if not users[before.node]:
                del users[before.node]
            if not users:
                del self._users[vertex]
        if not node:
            return
        self._owned[owner] = _Owned(node, frozenset(vertices))
        for vertex in self._owned[owner].vertices:
            users = self._users.setdefault(vertex, {})
            users[node] = users.get(node, 0) + 1


def _vertices_of(pod: Pod) -> Iterable[Vertex]:
    namespace = pod.namespace
    if pod.spec.service_account_name:
        yield (ACCOUNT, f"{namespace}/{pod.spec.service_account_name}")
    for name in secret_names(pod):
        yield (SECRET, f"{namespace}/{name}")
    for name in config_map_names(pod):
        yield (CONFIG_MAP, f"{namespace}/{name}")
    for key in claim_keys(pod):
        yield (CLAIM, key)
    for name in list_claim_names(pod):
        yield (RESOURCE_CLAIM, f"{namespace}/{name}")
