"""Validation of PersistentVolumeClaims.

Source: pkg/apis/core/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api.core_v1 import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
)
from kcm.api.core_v1.references import TypedLocalObjectReference, TypedObjectReference
from kcm.api.pods.resources import is_native
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    NOT_NEGATIVE,
    Faults,
    forbidden,
    invalid,
    invalid_all,
    not_supported,
    require_unchanged,
    required,
)
from kcm.apimachinery.quantity import Quantity
from kcm.errors import FieldError
from kcm.kinds.validation import meta

Source = TypedLocalObjectReference | TypedObjectReference

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_FIXED = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName "
    "for bound claims"
)
_TOO_SMALL = "field can not be less than status.capacity"
_RESIZE_STATES = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def create(claim: PersistentVolumeClaim) -> Faults:
    faults = meta.metadata(claim, namespaced=True, name_rule=names.subdomain_faults)
    return faults + claim_spec(claim.spec, "spec")


def update(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> Faults:
    faults = meta.metadata_update(new, old) + claim_spec(new.spec, "spec", old.spec)
    changeable: dict[str, str | None] = {} if old.spec.volume_name else {"volume_name": None}
    if _gets_a_class(new, old):
        changeable["storage_class_name"] = None
    if not _takes_annotated_class(new, old):
        after, before = (
            new.annotations.get(_CLASS_ANNOTATION),
            old.annotations.get(_CLASS_ANNOTATION),
        )
        faults += require_unchanged(f"metadata.annotations.{_CLASS_ANNOTATION}", after, before)
    if old.status.phase == "Bound":
        changeable["volume_attributes_class_name"] = old.spec.volume_attributes_class_name
        requests = old.spec.resources.requests
        fixed = new.spec.replace(resources=new.spec.resources.replace(requests=requests))
    else:
        fixed = new.spec
    if fixed.replace(**changeable) != old.spec:
        faults.append(forbidden("spec", _FIXED))
    faults += require_unchanged("volumeMode", new.spec.volume_mode, old.spec.volume_mode)
    return faults + _shrinking(new, old) + _loses_attributes(new, old)


def _gets_a_class(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> bool:
    """Reports whether a claim without a class gets one: the default class of the cluster, or that
    of its old annotation.
    """
    annotated, name = old.annotations.get(_CLASS_ANNOTATION), new.spec.storage_class_name
    return old.spec.storage_class_name is None and annotated in (None, name)


def _takes_annotated_class(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> bool:
    """Reports whether the class moves from the annotation into the field."""
    annotated = old.annotations.get(_CLASS_ANNOTATION)
    return (
        annotated is not None
        and old.spec.storage_class_name is None
        and new.spec.storage_class_name == annotated
        and new.annotations.get(_CLASS_ANNOTATION) in (None, annotated)
    )


def _loses_attributes(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> Faults:
    """Returns a fault if a claim gives up the class of attributes that its volume has."""
    name = new.spec.volume_attributes_class_name
    if name or name == old.spec.volume_attributes_class_name:
        return []
    if old.status.current_volume_attributes_class_name is None:
        return []
    what = "nil" if name is None else "empty string"
    detail = (
        f"update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
    )
    return [forbidden("spec.volumeAttributesClassName", detail)]


def _shrinking(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> Faults:
    """Returns a fault if the claim asks for less than before, and not for more than it has.

    Less is allowed while an expansion has not come to its end.
    """
    before = (old.spec.resources.requests or {}).get("storage")
    wanted = (new.spec.resources.requests or {}).get("storage")
    if before is None or wanted is None or not wanted < before:
        return []
    has = (old.status.capacity or {}).get("storage")
    if wanted > (has or Quantity(0)):
        return []
    return [forbidden("spec.resources.requests.storage", _TOO_SMALL)]


def status_update(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> Faults:
    faults = meta.metadata_update(new, old)
    if new.spec.resources != old.spec.resources:
        return faults
    for name, amount in (new.status.capacity or {}).items():
        if amount.sign() < 0:
            faults.append(invalid(f"status.capacity[{name}]", str(amount), NOT_NEGATIVE))
    return faults + _allocation(new.status)


def _allocation(status: PersistentVolumeClaimStatus) -> Faults:
    """Checks what an expansion has come to."""
    faults: Faults = []
    path = "status.allocatedResourceStatuses"
    for name, state in (status.allocated_resource_statuses or {}).items():
        faults += _resource(name, path)
        if state not in _RESIZE_STATES:
            faults.append(not_supported(path, name, _RESIZE_STATES))
    path = "status.allocatedResources"
    for name, amount in (status.allocated_resources or {}).items():
        if wrong := _resource(name, path):
            faults += wrong
        elif amount.sign() < 0:
            detail = "must be a valid resource quantity"
            faults.append(invalid(f"{path}[{name}]", str(amount), detail))
    return faults


def _resource(name: str, path: str) -> Faults:
    if wrong := invalid_all(path, name, names.qualified_name_faults(name)):
        return wrong
    return (
        [not_supported(path, name, ("storage",))] if is_native(name) and name != "storage" else []
    )


def claim_spec(
    spec: PersistentVolumeClaimSpec, path: str, old: PersistentVolumeClaimSpec | None = None
) -> Faults:
    """Checks the spec of a claim. Sources that the old spec has already are not checked again."""
    modes, where = spec.access_modes or (), f"{path}.accessModes"
    faults = access_modes(modes, where, detail="at least 1 access mode is required")
    if spec.selector is not None:
        faults += meta.label_selector(spec.selector, f"{path}.selector")
    if old is None or (spec.data_source, spec.data_source_ref) != (
        old.data_source,
        old.data_source_ref,
    ):
        faults += _sources(spec, path)
    return faults + _size(spec, path) + _names(spec, path)


def _sources(spec: PersistentVolumeClaimSpec, path: str) -> Faults:
    """Checks what the volume is to be filled from."""
    source, ref, faults = spec.data_source, spec.data_source_ref, list[FieldError]()
    if source is not None:
        faults += _source(source, f"{path}.dataSource")
    if ref is None:
        return faults
    faults += _source(ref, f"{path}.dataSourceRef")
    if ref.namespace:
        where = f"{path}.dataSourceRef.namespace"
        faults += invalid_all(where, ref.namespace, names.label_faults(ref.namespace))
        if source is not None:
            detail = "may not be specified when dataSourceRef.namespace is specified"
            faults.append(invalid(path, f"{path}.dataSource", detail))
    elif source is not None and _identity(source) != _identity(ref):
        faults.append(invalid(path, f"{path}.dataSource", "must match dataSourceRef"))
    return faults


def _source(source: Source, path: str) -> Faults:
    faults = [required(f"{path}.{name}") for name in ("name", "kind") if not getattr(source, name)]
    if source.api_group:
        bad = names.subdomain_faults(source.api_group)
        return faults + invalid_all(f"{path}.apiGroup", source.api_group, bad)
    if source.kind != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        faults.append(invalid(path, source.kind, detail))
    return faults


def _identity(source: Source) -> tuple[str | None, str, str]:
    return source.api_group, source.kind, source.name


def access_modes(modes: Sequence[str], path: str, *, detail: str) -> Faults:
    """Checks access modes. `detail` is the message if there are none."""
    faults = [] if modes else [required(path, detail)]
    for mode in modes:
        if mode not in _MODES:
            faults.append(not_supported(path, mode, _MODES))
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        detail_alone = "may not use ReadWriteOncePod with other access modes"
        faults.append(forbidden(path, detail_alone))
    return faults


def _size(spec: PersistentVolumeClaimSpec, path: str) -> Faults:
    size = (spec.resources.requests or {}).get("storage")
    if size is None:
        return [required(f"{path}.resources[storage]")]
    if size.sign() <= 0:
        return [invalid(f"{path}.resources[storage]", str(size), "must be greater than zero")]
    return []


def _names(spec: PersistentVolumeClaimSpec, path: str) -> Faults:
    faults: Faults = []
    if spec.storage_class_name:
        for detail in names.subdomain_faults(spec.storage_class_name):
            faults.append(invalid(f"{path}.storageClassName", spec.storage_class_name, detail))
    if spec.volume_attributes_class_name:
        where, name = f"{path}.volumeAttributesClassName", spec.volume_attributes_class_name
        faults += invalid_all(where, name, names.subdomain_faults(name))
    if spec.volume_mode not in (None, "Block", "Filesystem"):
        mode = spec.volume_mode
        faults.append(not_supported(f"{path}.volumeMode", mode, ("Block", "Filesystem")))
    return faults
