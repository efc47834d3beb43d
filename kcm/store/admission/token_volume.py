"""The volume with a service account's token, which admission mounts into every container.

Source: mountServiceAccountToken and TokenVolumeSource in
plugin/pkg/admission/serviceaccount/admission.go, Kubernetes 1.33.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kcm.api.core_v1 import Container, PodSpec, ServiceAccount, Volume
from kcm.api.core_v1.containers import VolumeMount
from kcm.api.core_v1.volumes import TOKEN_VOLUME
from kcm.apimachinery.names import generate_name

PREFIX = "kube-api-access-"
MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
ROOT_CA = "kube-root-ca.crt"  # a ConfigMap, which a controller keeps in every namespace


def wants_token(spec: PodSpec, account: ServiceAccount | None) -> bool:
    """Reports whether a pod of this account gets a token. The pod's own word counts first."""
    for word in (
        spec.automount_service_account_token,
        account.automount_service_account_token if account is not None else None,
    ):
        if word is not None:
            return word
    return True


def mount_token(spec: PodSpec, rng: random.Random) -> PodSpec:
    """Returns the spec with the volume, mounted into every container that has nothing there."""
    present = next((v.name for v in spec.volumes or () if v.name.startswith(PREFIX)), "")
    name = present or generate_name(PREFIX, rng)
    mount = VolumeMount(name=name, read_only=True, mount_path=MOUNT_PATH)
    containers = [_mounted(container, mount) for container in spec.containers]
    first = [_mounted(container, mount) for container in spec.init_containers or ()]
    if _are_same(containers, spec.containers) and _are_same(first, spec.init_containers or ()):
        return spec
    volumes = list(spec.volumes or ())
    if not present:
        volumes.append(Volume(name=name, projected=TOKEN_VOLUME))
    return spec.replace(
        containers=containers,
        init_containers=first if spec.init_containers is not None else None,
        volumes=volumes,
    )


def _mounted(container: Container, mount: VolumeMount) -> Container:
    mounts = container.volume_mounts or []
    if any(present.mount_path == MOUNT_PATH for present in mounts):
        return container
    return container.replace(volume_mounts=[*mounts, mount])


def _are_same(new: Sequence[Container], old: Sequence[Container]) -> bool:
    return all(mine is theirs for mine, theirs in zip(new, old, strict=True))


def keep_token(wanted: dict[str, Any], current: Mapping[str, Any]) -> None:
    """Adds to a pod's spec, as JSON, the volume that admission added to the current spec.

    Users do not repeat it when they apply their pod again.
    """
    volumes = [v for v in current.get("volumes") or () if str(v.get("name")).startswith(PREFIX)]
    if not volumes:
        return
    _add_missing(wanted, "volumes", volumes)
    for field in ("containers", "initContainers"):
        mounts = {
            container.get("name"): [
                mount
                for mount in container.get("volumeMounts") or ()
                if str(mount.get("name")).startswith(PREFIX)
            ]
            for container in current.get(field) or ()
        }
        for container in wanted.get(field) or ():
            _add_missing(container, "volumeMounts", mounts.get(container.get("name")) or ())


def _add_missing(owner: dict[str, Any], field: str, items: Iterable[Mapping[str, Any]]) -> None:
    present = owner.get(field) or []
    names = {item.get("name") for item in present}
    if missing := [item for item in items if item.get("name") not in names]:
        owner[field] = [*present, *missing]
