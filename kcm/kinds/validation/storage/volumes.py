"""Validation of PersistentVolumes, StorageClasses and VolumeAttributesClasses.

Source: ValidatePersistentVolumeSpec in pkg/apis/core/validation/validation.go and
pkg/apis/storage/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import Any

from kcm.api.core_v1.affinity import TopologySelectorTerm
from kcm.api.core_v1.persistent_volumes import (
    CSIPersistentVolumeSource,
    LocalVolumeSource,
    PersistentVolume,
    PersistentVolumeSpec,
)
from kcm.api.core_v1.references import SecretReference
from kcm.api.storage_v1 import StorageClass, VolumeAttributesClass
from kcm.apimachinery import metadata_checks, names
from kcm.apimachinery.field_errors import (
    IMMUTABLE,
    Faults,
    duplicate,
    forbidden,
    invalid,
    invalid_all,
    not_supported,
    one_of,
    require_unchanged,
    required,
    too_long,
)
from kcm.kinds.validation import meta
from kcm.kinds.validation.podspec.affinity import (
    is_same_place,
    node_selector,
    without_stored_values,
)
from kcm.kinds.validation.podspec.volumes import disks
from kcm.kinds.validation.podspec.volumes.paths import no_backsteps
from kcm.kinds.validation.podspec.volumes.sources import csi_driver, host_path, nfs
from kcm.kinds.validation.volume_claims import access_modes

_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
_CLASS_POLICIES = ("Delete", "Retain")
_VOLUME_MODES = ("Block", "Filesystem")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_PARAMETERS_LIMIT = 512
_PARAMETERS_SIZE = 256 * 1024


# --- volumes


def create_volume(volume: PersistentVolume) -> Faults:
    faults = meta.metadata(volume, namespaced=False, name_rule=names.subdomain_faults)
    return faults + _volume(volume, "spec")


def update_volume(new: PersistentVolume, old: PersistentVolume) -> Faults:
    affinity = old.spec.node_affinity
    stored = affinity.required if affinity is not None else None
    faults = meta.metadata_update(new, old) + without_stored_values(_volume(new, "spec"), stored)
    if _sources(_comparable(new.spec, old.spec)) != _sources(old.spec):
        detail = "spec.persistentvolumesource is immutable after creation"
        faults.append(forbidden("spec.persistentvolumesource", detail))
    faults += require_unchanged("volumeMode", new.spec.volume_mode, old.spec.volume_mode)
    if not is_same_place(new.spec.node_affinity, old.spec.node_affinity):
        detail = f"{IMMUTABLE}, except for updating from beta label to GA"
        faults.append(invalid("nodeAffinity", new.spec.node_affinity, detail))
    attributes = new.spec.volume_attributes_class_name, old.spec.volume_attributes_class_name
    if attributes[0] is None and attributes[1] is not None:
        detail = "update from non-nil value to nil is forbidden"
        faults.append(forbidden("spec.volumeAttributesClassName", detail))
    return faults


def _comparable(new: PersistentVolumeSpec, old: PersistentVolumeSpec) -> PersistentVolumeSpec:
    """Returns the new spec without controllerExpandSecretRef if it was added, which is allowed."""
    if new.csi is None or old.csi is None or old.csi.controller_expand_secret_ref is not None:
        return new
    return new.replace(csi=new.csi.replace(controller_expand_secret_ref=None))


def _sources(spec: PersistentVolumeSpec) -> dict[str, Any]:
    values = spec.__dict__
    return {name: values[name] for name in _RULES if values[name] is not None}


def inline_volume(spec: PersistentVolumeSpec, path: str) -> Faults:
    """Checks a volume inside a VolumeAttachment. It must be of CSI, and belongs to no claim."""
    faults = access_modes(spec.access_modes or (), f"{path}.accessModes", detail="")
    fixed = {
        "claimRef": spec.claim_ref,
        "capacity": spec.capacity,
        "persistentVolumeReclaimPolicy": spec.persistent_volume_reclaim_policy,
        "storageClassName": spec.storage_class_name,
    }
    for field, value in fixed.items():
        if value:
            detail = "may not be specified in the context of inline volumes"
            faults.append(forbidden(f"{path}.{field}", detail))
    if spec.csi is None:
        detail = "has to be specified in the context of inline volumes"
        return [*faults, required(f"{path}.csi", detail)]
    return faults + _csi(spec.csi, f"{path}.csi")


def _volume(volume: PersistentVolume, path: str) -> Faults:
    spec = volume.spec
    faults = access_modes(spec.access_modes or (), f"{path}.accessModes", detail="")
    faults += _capacity(spec, f"{path}.capacity")
    policy = spec.persistent_volume_reclaim_policy
    if policy and policy not in _RECLAIM_POLICIES:
        where = f"{path}.persistentVolumeReclaimPolicy"
        faults.append(not_supported(where, policy, _RECLAIM_POLICIES))
    if spec.node_affinity is not None:
        faults += _node_affinity(spec, f"{path}.nodeAffinity")
    faults += _source(volume, path)
    root = spec.host_path is not None and posixpath.normpath(spec.host_path.path) == "/"
    if root and policy == "Recycle":
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        faults.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", detail))
    if spec.storage_class_name:
        complaints = names.subdomain_faults(spec.storage_class_name)
        faults += invalid_all(f"{path}.storageClassName", spec.storage_class_name, complaints)
    if spec.volume_mode is not None and spec.volume_mode not in _VOLUME_MODES:
        faults.append(not_supported(f"{path}.volumeMode", spec.volume_mode, _VOLUME_MODES))
    if spec.volume_attributes_class_name is not None:
        faults += _attributes_class(spec, path)
    return faults


def _attributes_class(spec: PersistentVolumeSpec, path: str) -> Faults:
    where, name = f"{path}.volumeAttributesClassName", spec.volume_attributes_class_name
    faults = (
        invalid_all(where, name, names.subdomain_faults(name))
        if name
        else [required(where, "an empty string is disallowed")]
    )
    if spec.csi is None:
        detail = "has to be specified when using volumeAttributesClassName"
        faults.append(required(f"{path}.csi", detail))
    return faults


def _capacity(spec: PersistentVolumeSpec, path: str) -> Faults:
    capacity = spec.capacity or {}
    if not capacity:
        return [required(path)]
    faults: Faults = []
    if "storage" not in capacity or len(capacity) > 1:
        faults.append(not_supported(path, sorted(capacity), ("storage",)))
    for name, amount in capacity.items():
        if amount.sign() <= 0:
            faults.append(invalid(f"{path}[{name}]", str(amount), "must be greater than zero"))
    return faults


def _node_affinity(spec: PersistentVolumeSpec, path: str) -> Faults:
    assert spec.node_affinity is not None
    if spec.node_affinity.required is None:
        return [required(f"{path}.required", "must specify required node constraints")]
    return node_selector(spec.node_affinity.required, f"{path}.required")


def _source(volume: PersistentVolume, path: str) -> Faults:
    sources = _sources(volume.spec)
    if not sources:
        return [required(path, "must specify a volume type")]
    fields = PersistentVolumeSpec.model_fields
    first, *others = sources
    faults = _RULES[first](sources[first], f"{path}.{fields[first].alias}")
    for name in others:
        detail = "may not specify more than 1 volume type"
        faults.append(forbidden(f"{path}.{fields[name].alias}", detail))
    iscsi = sources.get("iscsi")
    if iscsi is not None and iscsi.initiator_name is not None:
        faults += disks.iscsi_name(volume.name, iscsi.target_portal, f"{path}.iscsi.targetportal")
    if volume.spec.local is not None and volume.spec.node_affinity is None:
        detail = "Local volume requires node affinity"
        faults.append(required(f"{path}.nodeAffinity", detail))
    return faults


def _glusterfs(source: Any, path: str) -> Faults:
    faults = disks.requires("endpoints", "path")(source, path)
    namespace = source.endpoints_namespace
    if namespace is None:
        return faults
    detail = "if the endpointnamespace is set, it must be a valid namespace name"
    complaints = names.label_faults(namespace) if namespace else [detail]
    return faults + invalid_all(f"{path}.endpointsNamespace", namespace, complaints)


def _cinder(source: Any, path: str) -> Faults:
    faults = disks.with_secret("volume_id")(source, path)
    return faults + _secret_namespace(source.secret_ref, f"{path}.secretRef")


def _storage_os(source: Any, path: str) -> Faults:
    faults = disks.storage_os(source, path)
    return faults + _secret_namespace(source.secret_ref, f"{path}.secretRef")


def _secret_namespace(secret: Any, path: str) -> Faults:
    return [required(f"{path}.namespace")] if secret is not None and not secret.namespace else []


def _azure_file(source: Any, path: str) -> Faults:
    faults = disks.requires("secret_name", "share_name")(source, path)
    if source.secret_namespace == "":
        faults.append(required(f"{path}.secretNamespace"))
    return faults


def _local(source: LocalVolumeSource, path: str) -> Faults:
    if not source.path:
        return [required(f"{path}.path")]
    return no_backsteps(source.path, f"{path}.path")


def _iscsi(source: Any, path: str) -> Faults:
    faults = disks.iscsi(source, path)
    if source.secret_ref is not None and not source.secret_ref.name:
        faults.append(required(f"{path}.secretRef.name"))
    return faults


def _csi(source: CSIPersistentVolumeSource, path: str) -> Faults:
    faults = csi_driver(source.driver, f"{path}.driver")
    if not source.volume_handle:
        faults.append(required(f"{path}.volumeHandle"))
    for secret, field in (
        (source.controller_publish_secret_ref, "controllerPublishSecretRef"),
        (source.controller_expand_secret_ref, "controllerExpandSecretRef"),
        (source.node_publish_secret_ref, "nodePublishSecretRef"),
        (source.node_expand_secret_ref, "nodeExpandSecretRef"),
    ):
        if secret is not None:
            faults += _secret(secret, f"{path}.{field}")
    return faults


def _secret(secret: SecretReference, path: str) -> Faults:
    faults: Faults = []
    for field, value, rule in (
        ("name", secret.name, names.subdomain_faults),
        ("namespace", secret.namespace, names.label_faults),
    ):
        where = f"{path}.{field}"
        faults += invalid_all(where, value, rule(value)) if value else [required(where)]
    return faults


# In upstream's order: of several sources the first is checked, the others are rejected.
_RULES: dict[str, Callable[[Any, str], Faults]] = {
    "host_path": host_path,
    "gce_persistent_disk": disks.partitioned("pd_name"),
    "aws_elastic_block_store": disks.partitioned("volume_id"),
    "glusterfs": _glusterfs,
    "flocker": disks.flocker,
    "nfs": nfs,
    "rbd": disks.requires("monitors", "image"),
    "quobyte": disks.quobyte,
    "cephfs": disks.requires("monitors"),
    "iscsi": _iscsi,
    "cinder": _cinder,
    "fc": disks.fibre_channel,
    "flex_volume": disks.flex,
    "azure_file": _azure_file,
    "vsphere_volume": disks.requires("volume_path"),
    "photon_persistent_disk": disks.requires("pd_id"),
    "portworx_volume": disks.requires("volume_id"),
    "azure_disk": disks.azure_disk,
    "scale_io": disks.requires("gateway", "system", "volume_name"),
    "local": _local,
    "storageos": _storage_os,
    "csi": _csi,
}


# --- classes


def create_class(storage_class: StorageClass) -> Faults:
    return [
        *meta.metadata(storage_class, namespaced=False, name_rule=names.subdomain_faults),
        *_provisioner(storage_class.provisioner, "provisioner"),
        *_parameters(storage_class.parameters or {}, "parameters"),
        *one_of("reclaimPolicy", storage_class.reclaim_policy, _CLASS_POLICIES),
        *one_of("volumeBindingMode", storage_class.volume_binding_mode, _BINDING_MODES),
        *_topologies(storage_class.allowed_topologies or [], "allowedTopologies"),
    ]


def update_class(new: StorageClass, old: StorageClass) -> Faults:
    faults = meta.metadata_update(new, old)
    if (new.parameters or {}) != (old.parameters or {}):
        faults.append(forbidden("parameters", "updates to parameters are forbidden."))
    if new.provisioner != old.provisioner:
        faults.append(forbidden("provisioner", "updates to provisioner are forbidden."))
    if new.reclaim_policy != old.reclaim_policy:
        faults.append(forbidden("reclaimPolicy", "updates to reclaimPolicy are forbidden."))
    mode = new.volume_binding_mode
    return faults + require_unchanged("volumeBindingMode", mode, old.volume_binding_mode)


def create_attributes_class(attributes: VolumeAttributesClass) -> Faults:
    faults = meta.metadata(attributes, namespaced=False, name_rule=names.subdomain_faults)
    faults += _provisioner(attributes.driver_name, "driverName")
    parameters = attributes.parameters or {}
    if not parameters:
        return [*faults, required("parameters", "must contain at least one key/value pair")]
    return faults + _parameters(parameters, "parameters")


def update_attributes_class(new: VolumeAttributesClass, old: VolumeAttributesClass) -> Faults:
    faults = meta.metadata_update(new, old)
    if new.driver_name != old.driver_name:
        faults.append(forbidden("driverName", "updates to driverName are forbidden."))
    if (new.parameters or {}) != (old.parameters or {}):
        faults.append(forbidden("parameters", "updates to parameters are forbidden."))
    return faults


def _provisioner(provisioner: str, path: str) -> Faults:
    if not provisioner:
        return [required(path)]
    return invalid_all(path, provisioner, names.qualified_name_faults(provisioner.lower()))


def _parameters(parameters: dict[str, str], path: str) -> Faults:
    if len(parameters) > _PARAMETERS_LIMIT:
        return [too_long(path, _PARAMETERS_LIMIT)]
    faults = [invalid(path, key, "field can not be empty.") for key in parameters if not key]
    size = sum(len(text.encode(errors="replace")) for pair in parameters.items() for text in pair)
    return [*faults, too_long(path, _PARAMETERS_SIZE)] if size > _PARAMETERS_SIZE else faults


def _topologies(terms: list[TopologySelectorTerm], path: str) -> Faults:
    faults: Faults = []
    # As upstream, a term without expressions counts as one that is there already.
    seen: set[frozenset[tuple[str, frozenset[str]]]] = {frozenset()}
    for index, term in enumerate(terms):
        where = f"{path}[{index}]"
        faults += _topology(term, where)
        meaning = frozenset(
            (one.key, frozenset(one.values)) for one in term.match_label_expressions or ()
        )
        if meaning in seen:
            faults.append(duplicate(f"{where}.matchLabelExpressions", ""))
        seen.add(meaning)
    return faults


def _topology(term: TopologySelectorTerm, path: str) -> Faults:
    faults: Faults = []
    keys: set[str] = set()
    for index, expression in enumerate(term.match_label_expressions or ()):
        where = f"{path}.matchLabelExpressions[{index}]"
        if not expression.values:
            faults.append(required(f"{where}.values"))
        values: set[str] = set()
        for at, value in enumerate(expression.values):
            if value in values:
                faults.append(duplicate(f"{where}.values[{at}]", value))
            values.add(value)
        faults += metadata_checks.label_key(expression.key, f"{where}.key")
        if expression.key in keys:
            faults.append(duplicate(f"{where}.key", expression.key))
        keys.add(expression.key)
    return faults
