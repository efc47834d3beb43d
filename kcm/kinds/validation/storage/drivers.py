"""Rules for VolumeAttachments, CSIDrivers, CSINodes and CSIStorageCapacities.

Source: pkg/apis/storage/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.storage_v1 import (
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSIStorageCapacity,
    TokenRequest,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentStatus,
    VolumeError,
)
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    IMMUTABLE,
    NOT_NEGATIVE,
    Faults,
    duplicate,
    forbidden,
    invalid,
    invalid_all,
    not_negative,
    not_supported,
    require_unchanged,
    required,
    too_long,
)
from kcm.kinds.validation import meta
from kcm.kinds.validation.podspec.volumes.sources import csi_driver
from kcm.kinds.validation.storage import volumes

_METADATA_SIZE = 256 * 1024
_MESSAGE_SIZE = 1024
_NODE_ID_LIMIT = 256
_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLE_MODES = ("Persistent", "Ephemeral")
_SHORTEST_UPDATE_PERIOD = 10  # seconds
_SHORTEST_TOKEN = 600
_LONGEST_TOKEN = 1 << 32
_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


# --- attachments


def create_attachment(attachment: VolumeAttachment) -> Faults:
    faults = _attachment(attachment)
    faults += csi_driver(attachment.spec.attacher, "spec.attacher")
    name = attachment.spec.source.persistent_volume_name
    if name is not None:
        path = "spec.source.persistentVolumeName"
        faults += invalid_all(path, name, names.subdomain_faults(name))
    return faults


def update_attachment(new: VolumeAttachment, old: VolumeAttachment) -> Faults:
    """Checks a changed attachment or a changed status of it."""
    faults = meta.metadata_update(new, old) + _attachment(new)
    if new.spec != old.spec:
        faults.append(invalid("spec", new.spec, IMMUTABLE))
    return faults


def _attachment(attachment: VolumeAttachment) -> Faults:
    spec = attachment.spec
    faults = meta.metadata(attachment, namespaced=False, name_rule=names.subdomain_faults)
    if not spec.attacher:
        faults.append(required("spec.attacher"))
    faults += _source(spec.source, "spec.source")
    faults += invalid_all("spec.nodeName", spec.node_name, names.subdomain_faults(spec.node_name))
    return faults + _attachment_status(attachment.status, "status")


def _source(source: VolumeAttachmentSource, path: str) -> Faults:
    name, inline = source.persistent_volume_name, source.inline_volume_spec
    if name is None and inline is None:
        return [required(path, _ONE_SOURCE)]
    if name is not None and inline is not None:
        return [forbidden(path, _ONE_SOURCE)]
    if inline is not None:
        return volumes.inline_volume(inline, f"{path}.inlineVolumeSpec")
    detail = "must specify non empty persistentVolumeName"
    return [] if name else [required(f"{path}.persistentVolumeName", detail)]


def _attachment_status(status: VolumeAttachmentStatus, path: str) -> Faults:
    pairs = (status.attachment_metadata or {}).items()
    size = sum(len(text.encode(errors="replace")) for pair in pairs for text in pair)
    faults: Faults = []
    if size > _METADATA_SIZE:
        faults.append(too_long(f"{path}.attachmentMetadata", _METADATA_SIZE))
    faults += _volume_error(status.attach_error, f"{path}.attachError")
    return faults + _volume_error(status.detach_error, f"{path}.detachError")


def _volume_error(error: VolumeError | None, path: str) -> Faults:
    if error is None:
        return []
    faults: Faults = []
    if len((error.message or "").encode(errors="replace")) > _MESSAGE_SIZE:
        faults.append(too_long(f"{path}.message", _METADATA_SIZE))  # upstream names this limit
    if error.error_code is not None and error.error_code < 0:
        detail = f"must be between 0 and {2**31 - 1}, inclusive"
        faults.append(invalid(f"{path}.errorCode", error.error_code, detail))
    return faults


# --- drivers


def create_driver(driver: CSIDriver) -> Faults:
    faults = meta.metadata(driver, namespaced=False, name_rule=names.subdomain_faults)
    return faults + _driver(driver.spec, "spec")


def update_driver(new: CSIDriver, old: CSIDriver) -> Faults:
    faults = meta.metadata_update(new, old) + _driver(new.spec, "spec")
    for field, now, before in (
        ("attachedRequired", new.spec.attach_required, old.spec.attach_required),
        ("volumeLifecycleModes", new.spec.volume_lifecycle_modes, old.spec.volume_lifecycle_modes),
    ):
        faults += require_unchanged(f"spec.{field}", now, before)
    return faults


def _driver(spec: CSIDriverSpec, path: str) -> Faults:
    faults = [
        required(f"{path}.{field}")
        for field, value in (
            ("attachedRequired", spec.attach_required),
            ("podInfoOnMount", spec.pod_info_on_mount),
            ("storageCapacity", spec.storage_capacity),
        )
        if value is None
    ]
    policy = spec.fs_group_policy
    if policy is not None and policy not in _GROUP_POLICIES:
        faults.append(not_supported(f"{path}.fsGroupPolicy", policy, _GROUP_POLICIES))
    faults += _token_requests(spec.token_requests or [], f"{path}.tokenRequests")
    period = spec.node_allocatable_update_period_seconds
    if period is not None and period < _SHORTEST_UPDATE_PERIOD:
        detail = f"must be greater than or equal to {_SHORTEST_UPDATE_PERIOD} seconds"
        faults.append(invalid(f"{path}.nodeAllocatableUpdatePeriodSeconds", period, detail))
    in_secrets = spec.service_account_token_in_secrets
    if in_secrets is not None and not spec.token_requests:
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        faults.append(invalid(f"{path}.serviceAccountTokenInSecrets", in_secrets, detail))
    for mode in spec.volume_lifecycle_modes or ():
        if mode not in _LIFECYCLE_MODES:
            faults.append(not_supported(f"{path}.volumeLifecycleModes", mode, _LIFECYCLE_MODES))
    return faults


def _token_requests(requests: list[TokenRequest], path: str) -> Faults:
    faults: Faults = []
    audiences: set[str] = set()
    for index, request in enumerate(requests):
        if request.audience in audiences:
            faults.append(duplicate(f"{path}[{index}].audience", request.audience))
            continue
        audiences.add(request.audience)
        seconds, where = request.expiration_seconds, f"{path}[{index}].expirationSeconds"
        if seconds is not None and seconds < _SHORTEST_TOKEN:
            detail = "may not specify a duration less than 10 minutes"
            faults.append(invalid(where, seconds, detail))
        if seconds is not None and seconds > _LONGEST_TOKEN:
            detail = "may not specify a duration larger than 2^32 seconds"
            faults.append(invalid(where, seconds, detail))
    return faults


# --- drivers of nodes


def create_node(node: CSINode) -> Faults:
    faults = meta.metadata(node, namespaced=False, name_rule=names.subdomain_faults)
    seen: set[str] = set()
    for index, driver in enumerate(node.spec.drivers):
        faults += _node_driver(driver, seen, f"spec.drivers[{index}]")
        seen.add(driver.name)
    return faults


def update_node(new: CSINode, old: CSINode) -> Faults:
    faults = meta.metadata_update(new, old) + create_node(new)
    before = {driver.name: driver for driver in old.spec.drivers}
    for driver in new.spec.drivers:
        if driver.name in before:
            allocatable = driver.allocatable  # how many volumes a node takes may change
            was = before[driver.name].replace(allocatable=allocatable)
            faults += require_unchanged("spec.drivers", driver, was)
    return faults


def _node_driver(driver: CSINodeDriver, seen: set[str], path: str) -> Faults:
    faults = csi_driver(driver.name, f"{path}.name")
    if not driver.node_id:
        faults.append(required(f"{path}.nodeID"))
    if len(driver.node_id) > _NODE_ID_LIMIT:
        detail = f"must be {_NODE_ID_LIMIT} characters or less"
        faults.append(invalid(f"{path}.nodeID", driver.node_id, detail))
    if driver.allocatable is not None:
        faults += not_negative(f"{path}.allocatable.count", driver.allocatable.count)
    if driver.name in seen:
        faults.append(duplicate(f"{path}.name", driver.name))
    keys: set[str] = set()
    for key in driver.topology_keys or ():
        if not key:
            faults.append(required(path))
        if key in keys:
            faults.append(duplicate(path, key))
        keys.add(key)
        faults += invalid_all(path, key, names.qualified_name_faults(key))
    return faults


# --- capacities


def create_capacity(capacity: CSIStorageCapacity) -> Faults:
    faults = meta.metadata(capacity, namespaced=True, name_rule=names.subdomain_faults)
    if capacity.node_topology is not None:
        faults += meta.label_selector(capacity.node_topology, "nodeTopology")
    name = capacity.storage_class_name
    faults += invalid_all("storageClassName", name, names.subdomain_faults(name))
    if capacity.capacity is not None and capacity.capacity.sign() < 0:
        faults.append(invalid("capacity", str(capacity.capacity), NOT_NEGATIVE))
    return faults


def update_capacity(new: CSIStorageCapacity, old: CSIStorageCapacity) -> Faults:
    return [
        *meta.metadata_update(new, old),
        *require_unchanged("nodeTopology", new.node_topology, old.node_topology),
        *require_unchanged("storageClassName", new.storage_class_name, old.storage_class_name),
    ]
