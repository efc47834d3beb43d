"""Defaults of volumes: those of pods, and PersistentVolumes.

Source: pkg/apis/core/v1/defaults.go, and the +default markers in
staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from kcm.api.core_v1 import Volume
from kcm.api.core_v1.persistent_volumes import PersistentVolume, PersistentVolumeSpec
from kcm.api.core_v1.volume_sources import (
    DownwardAPIVolumeFile,
    DownwardAPIVolumeSource,
    EmptyDirVolumeSource,
    HostPathVolumeSource,
    ImageVolumeSource,
)
from kcm.api.core_v1.volumes import (
    TOKEN_VOLUME,
    EphemeralVolumeSource,
    ProjectedVolumeSource,
    VolumeProjection,
)
from kcm.apimachinery.base import Model
from kcm.kinds.defaults.defaulting import change_fields, fill_absent, fill_defaults, fill_each
from kcm.kinds.defaults.volume_claims import claim_spec

_FILE_MODE = 0o644
_TOKEN_SECONDS = 3600

ModelT = TypeVar("ModelT", bound=Model)

# The grammar of references: github.com/distribution/reference, regexp.go.
_REFERENCE = re.compile(
    r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::\d+)?/)?"  # a registry
    r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*"
    r"(?::\w[\w.-]{0,127})?(?:@[a-zA-Z][\w+.-]*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
_LONGEST_IMAGE = 512  # characters of an image; longer names are no references
HolderT = TypeVar("HolderT", Volume, PersistentVolumeSpec)


def volume(volume: Volume) -> Volume:
    """Returns the volume with the defaults of its source.

    One without a source becomes an emptyDir.
    """
    if not volume.sources():
        return volume.replace(empty_dir=EmptyDirVolumeSource())
    return _with_sources(volume)


def persistent_volume(volume: PersistentVolume) -> PersistentVolume:
    spec = fill_defaults(
        _with_sources(volume.spec),
        persistent_volume_reclaim_policy="Retain",
    )
    spec = fill_absent(spec, volume_mode="Filesystem")
    return change_fields(volume, spec=spec, status=fill_defaults(volume.status, phase="Pending"))


def _with_sources(holder: HolderT) -> HolderT:
    values = holder.__dict__
    changes = {
        name: fill(source)
        for name, fill in _SOURCES.items()
        if (source := values.get(name)) is not None
    }
    return change_fields(holder, **changes) if changes else holder


def _defaults(**defaults: Any) -> Callable[[ModelT], ModelT]:
    return lambda source: fill_defaults(source, **defaults)


def _host_path(source: HostPathVolumeSource) -> HostPathVolumeSource:
    return source.replace(type="") if source.type is None else source


def _downward_api(source: DownwardAPIVolumeSource) -> DownwardAPIVolumeSource:
    source = change_fields(source, items=fill_each(source.items, _downward_file))
    return fill_defaults(source, default_mode=_FILE_MODE)


def _downward_file(item: DownwardAPIVolumeFile) -> DownwardAPIVolumeFile:
    if item.field_ref is None:
        return item
    return change_fields(item, field_ref=fill_defaults(item.field_ref, api_version="v1"))


def _projected_volume(source: ProjectedVolumeSource) -> ProjectedVolumeSource:
    if source is TOKEN_VOLUME:
        return source
    source = change_fields(source, sources=fill_each(source.sources, _projection))
    return fill_defaults(source, default_mode=_FILE_MODE)


def _projection(source: VolumeProjection) -> VolumeProjection:
    token, downward = source.service_account_token, source.downward_api
    if token is not None:
        filled_token = fill_defaults(token, expiration_seconds=_TOKEN_SECONDS)
        source = change_fields(source, service_account_token=filled_token)
    if downward is not None:
        items = fill_each(downward.items, _downward_file)
        source = change_fields(source, downward_api=change_fields(downward, items=items))
    return source


def _ephemeral(source: EphemeralVolumeSource) -> EphemeralVolumeSource:
    template = source.volume_claim_template
    if template is None:
        return source
    template = change_fields(template, spec=claim_spec(template.spec))
    return change_fields(source, volume_claim_template=template)


def _image(source: ImageVolumeSource) -> ImageVolumeSource:
    return fill_defaults(source, pull_policy=pull_policy(source.reference or ""))


_SOURCES: dict[str, Callable[[Any], Any]] = {
    "secret": _defaults(default_mode=_FILE_MODE),
    "config_map": _defaults(default_mode=_FILE_MODE),
    "downward_api": _downward_api,
    "projected": _projected_volume,
    "host_path": _host_path,
    "ephemeral": _ephemeral,
    "image": _image,
    "rbd": _defaults(pool="rbd", user="admin", keyring="/etc/ceph/keyring"),
    "iscsi": _defaults(iscsi_interface="default"),
    "azure_disk": _defaults(
        caching_mode="ReadWrite", fs_type="ext4", read_only=False, kind="Shared"
    ),
    "scale_io": _defaults(storage_mode="ThinProvisioned", fs_type="xfs"),
}


def image_tag(image: str) -> str:
    """Returns the tag of an image: "latest" without a tag, "" with a digest and no tag."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return tag or ("" if digest else "latest")


def pull_policy(image: str) -> str:
    """Returns the default pull policy of an image, IfNotPresent if it is no image's name."""
    return _pull_policy(image) if len(image) <= _LONGEST_IMAGE else "IfNotPresent"


@lru_cache(maxsize=1024)
def _pull_policy(image: str) -> str:
    is_latest = image_tag(image) == "latest" and _REFERENCE.fullmatch(image)
    return "Always" if is_latest else "IfNotPresent"
