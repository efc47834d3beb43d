"""Validation of volumes that are disks or shares of storage systems.

The sources of pods and of PersistentVolumes refer to Secrets in different ways; otherwise they are
checked alike.

Source: validateVolumeSource and ValidatePersistentVolumeSpec in
pkg/apis/core/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kcm.apimachinery import names
from kcm.apimachinery.base import Model
from kcm.apimachinery.field_errors import Faults, invalid, invalid_all, not_supported, required

_LUN = "must be between 0 and 255, inclusive"
_PARTITION = "must be between 1 and 255, inclusive"
_ISCSI_NAME_LIMIT = 64
_ISCSI_NAMES = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$", re.ASCII),
    "eui": re.compile(r"eui.[A-Za-z0-9]{16}"),
    "naa": re.compile(r"naa.[A-Za-z0-9]{32}"),
}
_TENANT_LIMIT = 64
_CACHING_MODES = ("None", "ReadOnly", "ReadWrite")
_DISK_KINDS = ("Dedicated", "Managed", "Shared")
_MANAGED_URI = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/"
    "microsoft.compute/disks/{disk-id}"
)
_BLOB_URI = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"


def requires(*fields: str) -> Callable[[Model, str], Faults]:
    """Returns a function that checks that these attributes of a source are not empty."""

    def check(source: Model, path: str) -> Faults:
        aliases = type(source).model_fields
        return [
            required(f"{path}.{aliases[name].alias}")
            for name in fields
            if not getattr(source, name)
        ]

    return check


def with_secret(*fields: str) -> Callable[[Any, str], Faults]:
    """Returns a function that checks that these attributes of a source are not empty.

    It also checks that the source's secretRef, if there is one, has a name.
    """
    check_fields = requires(*fields)

    def check(source: Any, path: str) -> Faults:
        faults = check_fields(source, path)
        if source.secret_ref is not None and not source.secret_ref.name:
            faults.append(required(f"{path}.secretRef.name"))
        return faults

    return check


def partitioned(field: str) -> Callable[[Any, str], Faults]:
    """Returns a function that checks a disk whose name is in this attribute, and the number of its
    partition.
    """
    check_fields = requires(field)

    def check(source: Any, path: str) -> Faults:
        faults = check_fields(source, path)
        if not 0 <= (source.partition or 0) <= 255:
            faults.append(invalid(f"{path}.partition", source.partition, _PARTITION))
        return faults

    return check


def iscsi(source: Any, path: str) -> Faults:
    faults = [] if source.target_portal else [required(f"{path}.targetPortal")]
    if not source.iqn:
        faults.append(required(f"{path}.iqn"))
    else:
        faults += _iscsi_format(source.iqn, f"{path}.iqn")
    if not 0 <= source.lun <= 255:
        faults.append(invalid(f"{path}.lun", source.lun, _LUN))
    authenticates = source.chap_auth_discovery or source.chap_auth_session
    if authenticates and source.secret_ref is None:
        faults.append(required(f"{path}.secretRef"))
    if source.initiator_name is not None:
        faults += _iscsi_format(source.initiator_name, f"{path}.initiatorname")
    return faults


def _iscsi_format(name: str, path: str) -> Faults:
    pattern = _ISCSI_NAMES.get(name[:3])
    if pattern is None:
        return [invalid(path, name, "must be valid format starting with iqn, eui, or naa")]
    # Upstream searches for an iqn anywhere in the text, for the others at its beginning.
    matches = pattern.search(name) if name.startswith("iqn") else pattern.fullmatch(name)
    return [] if matches else [invalid(path, name, "must be valid format")]


def iscsi_name(name: str, portal: str, path: str) -> Faults:
    """Checks that the initiator's name, which is formed from the volume's name and the portal, is
    not too long.
    """
    if len(f"{name}:{portal}") <= _ISCSI_NAME_LIMIT:
        return []
    detail = (
        "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if "
        "iscsi.initiatorName is specified."
    )
    return [invalid(path, name, detail)]


def fibre_channel(source: Any, path: str) -> Faults:
    faults: Faults = []
    names_given, ids_given = source.target_wwns or [], source.wwids or []
    if not names_given and not ids_given:
        detail = "must specify either targetWWNs or wwids, but not both"
        faults.append(required(f"{path}.targetWWNs", detail))
    if names_given and ids_given:
        detail = "targetWWNs and wwids can not be specified simultaneously"
        faults.append(invalid(f"{path}.targetWWNs", names_given, detail))
    if names_given and source.lun is None:
        faults.append(required(f"{path}.lun", "lun is required if targetWWNs is specified"))
    if names_given and source.lun is not None and not 0 <= source.lun <= 255:
        faults.append(invalid(f"{path}.lun", source.lun, _LUN))
    return faults


def quobyte(source: Any, path: str) -> Faults:
    faults: Faults = []
    pairs = "must be a host:port pair or multiple pairs separated by commas"
    if not source.registry:
        faults.append(required(f"{path}.registry", pairs))
    elif len(source.tenant or "") > _TENANT_LIMIT:
        detail = "must be a UUID and may not exceed a length of 64 characters"
        faults.append(required(f"{path}.tenant", detail))
    else:
        wrong = sum(not _is_host_and_port(pair) for pair in source.registry.split(","))
        faults += [invalid(f"{path}.registry", source.registry, pairs)] if wrong else []
    return faults + ([] if source.volume else [required(f"{path}.volume")])


def _is_host_and_port(pair: str) -> bool:
    host, separator, _ = pair.rpartition(":")
    return bool(separator) and (":" not in host or (host[:1] == "[" and host[-1:] == "]"))


def flocker(source: Any, path: str) -> Faults:
    faults: Faults = []
    if not source.dataset_name and not source.dataset_uuid:
        faults.append(required(path, "one of datasetName and datasetUUID is required"))
    if source.dataset_name and source.dataset_uuid:
        detail = "datasetName and datasetUUID can not be specified simultaneously"
        faults.append(invalid(path, "resource", detail))
    if "/" in (source.dataset_name or ""):
        faults.append(invalid(f"{path}.datasetName", source.dataset_name, "must not contain '/'"))
    return faults


def flex(source: Any, path: str) -> Faults:
    faults = [] if source.driver else [required(f"{path}.driver")]
    for key in source.options or ():
        domain = "." + key.partition("/")[0].lower()
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            detail = "kubernetes.io and k8s.io namespaces are reserved"
            faults.append(invalid(f"{path}.options[{key}]", key, detail))
    return faults


def azure_disk(source: Any, path: str) -> Faults:
    faults = [] if source.disk_name else [required(f"{path}.diskName")]
    if not source.disk_uri:
        faults.append(required(f"{path}.diskURI"))
    if source.caching_mode is not None and source.caching_mode not in _CACHING_MODES:
        faults.append(not_supported(f"{path}.cachingMode", source.caching_mode, _CACHING_MODES))
    if source.kind is None:
        return faults
    if source.kind not in _DISK_KINDS:
        faults.append(not_supported(f"{path}.kind", source.kind, _DISK_KINDS))
    managed = source.kind == "Managed"
    if not source.disk_uri.startswith("/subscriptions/" if managed else "https://"):
        supported = (_MANAGED_URI,) if managed else (_BLOB_URI,)
        faults.append(not_supported(f"{path}.diskURI", source.disk_uri, supported))
    return faults


def storage_os(source: Any, path: str) -> Faults:
    faults: Faults = []
    if not source.volume_name:
        faults.append(required(f"{path}.volumeName"))
    for name, alias in ((source.volume_name, "volumeName"),
                        (source.volume_namespace, "volumeNamespace")):  # fmt: skip
        if name:
            faults += invalid_all(f"{path}.{alias}", name, names.label_faults(name))
    if source.secret_ref is not None and not source.secret_ref.name:
        faults.append(required(f"{path}.secretRef.name"))
    return faults
