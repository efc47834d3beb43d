"""The Secrets and ConfigMaps that pods refer to, and the Secrets of volumes.

Source: VisitPodSecretNames and VisitPodConfigmapNames in pkg/api/v1/pod/util.go, and
VisitPVSecretNames in pkg/api/v1/persistentvolume/util.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kcm.api.core_v1 import Container, EphemeralContainer, PersistentVolume, Pod
from kcm.api.core_v1.volumes import Volume


def secret_names(pod: Pod) -> set[str]:
    """Returns the names of all Secrets that a pod refers to, all in the pod's namespace."""
    names = {pull.name for pull in pod.spec.image_pull_secrets or ()}
    for container in _containers(pod):
        names |= {s.secret_ref.name for s in container.env_from or () if s.secret_ref is not None}
        for variable in container.env or ():
            value = variable.value_from
            if value is not None and value.secret_key_ref is not None:
                names.add(value.secret_key_ref.name)
    for volume in pod.spec.volumes or ():
        names |= set(_secrets_of_volume(volume))
    return {name for name in names if name}


def config_map_names(pod: Pod) -> set[str]:
    """Returns the names of all ConfigMaps that a pod refers to, all in the pod's namespace."""
    names: set[str | None] = set()
    for container in _containers(pod):
        for source in container.env_from or ():
            if source.config_map_ref is not None:
                names.add(source.config_map_ref.name)
        for variable in container.env or ():
            value = variable.value_from
            if value is not None and value.config_map_key_ref is not None:
                names.add(value.config_map_key_ref.name)
    for volume in pod.spec.volumes or ():
        if volume.config_map is not None:
            names.add(volume.config_map.name)
        for part in volume.projected.sources if volume.projected is not None else ():
            if part.config_map is not None:
                names.add(part.config_map.name)
    return {name for name in names if name}


def token_audiences(pod: Pod) -> set[str]:
    """Returns the audiences of the service account tokens that a pod's volumes project.

    "" stands for the audience of the API server.
    """
    return {
        part.service_account_token.audience or ""
        for volume in pod.spec.volumes or ()
        if volume.projected is not None
        for part in volume.projected.sources
        if part.service_account_token is not None
    }


def node_secret_keys(volume: PersistentVolume) -> set[str]:
    """Returns the keys (`namespace/name`) of the Secrets that a node needs to mount a volume.

    A Secret without a namespace is in that of the claim to which the volume is bound, for the kinds
    of volumes that were once stored so.
    """
    spec = volume.spec
    claim_namespace = (spec.claim_ref.namespace if spec.claim_ref is not None else "") or ""
    references: list[tuple[str | None, str | None]] = []
    attributes: Mapping[str, Any] = spec.__dict__
    if (share := attributes["azure_file"]) is not None:
        references.append((share.secret_namespace or claim_namespace, share.secret_name))
    for name in ("cephfs", "flex_volume", "iscsi", "rbd", "scale_io", "cinder", "storageos"):
        source = attributes[name]
        if source is not None and source.secret_ref is not None:
            default = "" if name in ("cinder", "storageos") else claim_namespace
            references.append((source.secret_ref.namespace or default, source.secret_ref.name))
    if (csi := spec.csi) is not None:
        for reference in (
            csi.node_publish_secret_ref, csi.node_stage_secret_ref, csi.node_expand_secret_ref
        ):  # fmt: skip
            if reference is not None:
                references.append((reference.namespace, reference.name))
    return {f"{namespace}/{name}" for namespace, name in references if namespace and name}


def _containers(pod: Pod) -> Iterator[Container | EphemeralContainer]:
    yield from pod.spec.init_containers or ()
    yield from pod.spec.containers
    yield from pod.spec.ephemeral_containers or ()


def _secrets_of_volume(volume: Volume) -> Iterator[str | None]:
    if volume.secret is not None:
        yield volume.secret.secret_name
    sources = volume.sources()
    if "azureFile" in sources:
        yield sources["azureFile"].secret_name
    for part in volume.projected.sources if volume.projected is not None else ():
        if part.secret is not None:
            yield part.secret.name
    for name in ("cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"):
        if name in sources and sources[name].secret_ref is not None:
            yield sources[name].secret_ref.name
    if volume.csi is not None and volume.csi.node_publish_secret_ref is not None:
        yield volume.csi.node_publish_secret_ref.name
