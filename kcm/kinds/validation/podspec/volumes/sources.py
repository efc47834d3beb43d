"""Validation of the volumes of pods: their names, and the sources that need no storage system.

Source: ValidateVolumes and validateVolumeSource in pkg/apis/core/validation/validation.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kcm.api.core_v1 import Volume
from kcm.api.core_v1.volume_sources import (
    ConfigMapVolumeSource,
    CSIVolumeSource,
    EmptyDirVolumeSource,
    HostPathVolumeSource,
    ImageVolumeSource,
    NFSVolumeSource,
    PersistentVolumeClaimVolumeSource,
    SecretVolumeSource,
)
from kcm.api.core_v1.volumes import EphemeralVolumeSource
from kcm.apimachinery import metadata_checks, names
from kcm.apimachinery.field_errors import (
    Faults,
    duplicate,
    forbidden,
    invalid,
    invalid_all,
    not_supported,
    one_of,
    required,
    too_long,
)
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.kinds.validation import volume_claims
from kcm.kinds.validation.podspec.volumes import disks
from kcm.kinds.validation.podspec.volumes.paths import descending, file_mode, no_backsteps
from kcm.kinds.validation.podspec.volumes.projected import downward_api, key_to_paths, projected

_HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate",
    "Socket",
)  # fmt: skip
_DRIVER_LIMIT = 63
PULL_POLICIES = ("Always", "IfNotPresent", "Never")


def volumes(pod_volumes: Iterable[Volume], path: str, pod_name: str | None = None) -> Faults:
    """Checks all volumes of a pod, or of a template, for which `pod_name` is None."""
    faults: Faults = []
    pod_volumes = list(pod_volumes)
    seen: set[str] = set()
    made = {
        f"{pod_name}-{one.name}" for one in pod_volumes if pod_name and one.ephemeral is not None
    }
    for index, volume in enumerate(pod_volumes):
        where = f"{path}[{index}]"
        faults += _sources(volume, where, pod_name)
        if not volume.name:
            faults.append(required(f"{where}.name"))
        else:
            faults += invalid_all(f"{where}.name", volume.name, names.label_faults(volume.name))
        if volume.name and volume.name in seen:
            faults.append(duplicate(f"{where}.name", volume.name))
        seen.add(volume.name)
        claim = volume.persistent_volume_claim
        if claim is not None and claim.claim_name in made:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            at = f"{where}.persistentVolumeClaim.claimName"
            faults.append(invalid(at, claim.claim_name, detail))
    return faults


def _sources(volume: Volume, path: str, pod_name: str | None) -> Faults:
    sources = volume.sources()
    if not sources:
        return [required(path, "must specify a volume type")]
    first, *others = sorted(sources, key=lambda name: _ORDER.get(name, len(_ORDER)))
    faults = _RULES[first](sources[first], f"{path}.{first}")
    if pod_name is not None and volume.image is not None and not volume.image.reference:
        faults.append(required(f"{path}.image.reference"))
    for name in others:
        faults.append(forbidden(f"{path}.{name}", "may not specify more than 1 volume type"))
    if volume.ephemeral is not None and pod_name and volume.name:
        claim = f"{pod_name}-{volume.name}"
        for detail in names.subdomain_faults(claim):
            faults.append(invalid(f"{path}.name", volume.name, f'PVC name "{claim}": {detail}'))
    iscsi = sources.get("iscsi")
    if iscsi is not None and iscsi.initiator_name is not None:
        faults += disks.iscsi_name(volume.name, iscsi.target_portal, f"{path}.name")
    return faults


def host_path(source: HostPathVolumeSource, path: str) -> Faults:
    if not source.path:
        return [required(f"{path}.path")]
    faults = no_backsteps(source.path, f"{path}.path")
    if source.type is not None and source.type not in _HOST_PATH_TYPES:
        faults.append(not_supported(f"{path}.type", source.type, _HOST_PATH_TYPES))
    return faults


def nfs(source: NFSVolumeSource, path: str) -> Faults:
    faults = [] if source.server else [required(f"{path}.server")]
    if not source.path:
        faults.append(required(f"{path}.path"))
    if not source.path.startswith("/"):
        faults.append(invalid(f"{path}.path", source.path, "must be an absolute path"))
    return faults


def csi_driver(name: str, path: str) -> Faults:
    """Checks the name of a CSI driver."""
    faults = [] if name else [required(path)]
    if len(name) > _DRIVER_LIMIT:
        faults.append(too_long(path, _DRIVER_LIMIT))
    return faults + invalid_all(path, name, names.subdomain_faults(name.lower()))


def _empty_dir(source: EmptyDirVolumeSource, path: str) -> Faults:
    if source.size_limit is not None and source.size_limit.sign() < 0:
        detail = "SizeLimit field must be a valid resource quantity"
        return [forbidden(f"{path}.sizeLimit", detail)]
    return []


def _git_repo(source: Any, path: str) -> Faults:
    faults = [] if source.repository else [required(f"{path}.repository")]
    return faults + descending(source.directory or "", f"{path}.directory")


def _secret(source: SecretVolumeSource, path: str) -> Faults:
    faults = [] if source.secret_name else [required(f"{path}.secretName")]
    faults += file_mode(source.default_mode, f"{path}.defaultMode")
    return faults + key_to_paths(source.items or (), f"{path}.items")


def _config_map(source: ConfigMapVolumeSource, path: str) -> Faults:
    faults = [] if source.name else [required(f"{path}.name")]
    faults += file_mode(source.default_mode, f"{path}.defaultMode")
    return faults + key_to_paths(source.items or (), f"{path}.items")


def _claim(source: PersistentVolumeClaimVolumeSource, path: str) -> Faults:
    return [] if source.claim_name else [required(f"{path}.claimName")]


def _csi(source: CSIVolumeSource, path: str) -> Faults:
    faults = csi_driver(source.driver, f"{path}.driver")
    secret = source.node_publish_secret_ref
    if secret is None:
        return faults
    if not secret.name:
        return [*faults, required(f"{path}.nodePublishSecretRef.name")]
    return faults + invalid_all(f"{path}.name", secret.name, names.subdomain_faults(secret.name))


_TEMPLATE_METADATA = {"labels", "annotations"}


def _ephemeral(source: EphemeralVolumeSource, path: str) -> Faults:
    template = source.volume_claim_template
    if template is None:
        return [required(f"{path}.volumeClaimTemplate")]
    where = f"{path}.volumeClaimTemplate"
    return [
        *_template_metadata(template.metadata, f"{where}.metadata"),
        *volume_claims.claim_spec(template.spec, f"{where}.spec"),
    ]


def _template_metadata(metadata: ObjectMeta, path: str) -> Faults:
    """Checks that only labels and annotations are set."""
    faults = metadata_checks.annotation_map(metadata.annotations, f"{path}.annotations")
    faults += metadata_checks.labels(metadata.labels, f"{path}.labels")
    for name, field in type(metadata).model_fields.items():
        if name not in _TEMPLATE_METADATA and getattr(metadata, name) is not None:
            faults.append(forbidden(f"{path}.{field.alias}", "cannot be set"))
    return faults


def _image(source: ImageVolumeSource, path: str) -> Faults:
    return one_of(f"{path}.pullPolicy", source.pull_policy, PULL_POLICIES)


# In upstream's order: of several sources of a volume the first is checked, the others are rejected.
_RULES: dict[str, Callable[[Any, str], Faults]] = {
    "emptyDir": _empty_dir,
    "hostPath": host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": disks.partitioned("pd_name"),
    "awsElasticBlockStore": disks.partitioned("volume_id"),
    "secret": _secret,
    "nfs": nfs,
    "iscsi": disks.iscsi,
    "glusterfs": disks.requires("endpoints", "path"),
    "flocker": disks.flocker,
    "persistentVolumeClaim": _claim,
    "rbd": disks.requires("monitors", "image"),
    "cinder": disks.with_secret("volume_id"),
    "cephfs": disks.requires("monitors"),
    "quobyte": disks.quobyte,
    "downwardAPI": downward_api,
    "fc": disks.fibre_channel,
    "flexVolume": disks.flex,
    "configMap": _config_map,
    "azureFile": disks.requires("secret_name", "share_name"),
    "vsphereVolume": disks.requires("volume_path"),
    "photonPersistentDisk": disks.requires("pd_id"),
    "portworxVolume": disks.requires("volume_id"),
    "azureDisk": disks.azure_disk,
    "storageos": disks.storage_os,
    "projected": projected,
    "scaleIO": disks.requires("gateway", "system", "volume_name"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
_ORDER = {name: place for place, name in enumerate(_RULES)}
