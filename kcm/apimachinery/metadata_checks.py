"""Checks of the metadata of an object, whether it is an object of its own or within another.

Source: staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    Faults,
    forbidden,
    invalid,
    invalid_all,
    not_negative,
    required,
    too_long,
)
from kcm.apimachinery.meta_v1 import ObjectMeta, OwnerReference
from kcm.apimachinery.names import NameFaults

ANNOTATIONS_LIMIT = 256 * 1024  # bytes, keys and values together
NAME_REQUIRED = "name or generateName is required"
_BANNED_OWNER = ("v1", "Event")


def check(meta: ObjectMeta, path: str, *, namespaced: bool, name_rule: NameFaults) -> Faults:
    """Checks the metadata of a new object, whose name is already generated."""
    faults: Faults = []
    if meta.generate_name:
        masked = _mask_trailing_dash(meta.generate_name)
        faults += invalid_all(f"{path}.generateName", meta.generate_name, name_rule(masked))
    if not meta.name:
        faults.append(required(f"{path}.name", NAME_REQUIRED))
    else:
        faults += invalid_all(f"{path}.name", meta.name, name_rule(meta.name))
    return faults + _namespace(meta, path, namespaced) + check_common(meta, path)


def check_common(meta: ObjectMeta, path: str) -> Faults:
    """Checks what may change in metadata: labels, annotations, owners and finalizers."""
    return [
        *not_negative(f"{path}.generation", meta.generation),
        *labels(meta.labels, f"{path}.labels"),
        *annotation_map(meta.annotations, f"{path}.annotations"),
        *_owner_references(meta.owner_references or [], f"{path}.ownerReferences"),
        *_finalizers(meta.finalizers or [], f"{path}.finalizers"),
    ]


def _mask_trailing_dash(name: str) -> str:
    """Returns a prefix without its last dash, which is valid because more characters follow."""
    return name[:-2] + "a" if len(name) > 1 and name.endswith("-") else name


def _namespace(meta: ObjectMeta, path: str, namespaced: bool) -> Faults:
    if not namespaced:
        return (
            [forbidden(f"{path}.namespace", "not allowed on this type")] if meta.namespace else []
        )
    if not meta.namespace:
        return [required(f"{path}.namespace")]
    return invalid_all(f"{path}.namespace", meta.namespace, names.label_faults(meta.namespace))


# All pods of a workload have the same few keys and values.
@lru_cache(maxsize=1024)
def key_faults(text: str) -> tuple[str, ...]:
    """Returns what is wrong with the key of a label or the name of a finalizer."""
    return tuple(names.qualified_name_faults(text))


@lru_cache(maxsize=1024)
def label_value_faults(text: str) -> tuple[str, ...]:
    """Returns what is wrong with the value of a label."""
    return tuple(names.label_value_faults(text))


def labels(label_map: Mapping[str, str] | None, path: str) -> Faults:
    faults: Faults = []
    for key, value in (label_map or {}).items():
        faults += invalid_all(path, key, key_faults(key))
        faults += invalid_all(path, value, label_value_faults(value))
    return faults


def label_key(key: str, path: str) -> Faults:
    return invalid_all(path, key, key_faults(key))


def annotation_map(annotations: Mapping[str, str] | None, path: str) -> Faults:
    if not annotations:
        return []
    faults: Faults = []
    for key in annotations:
        # A qualified name, except that case does not matter.
        faults += invalid_all(path, key, key_faults(key.lower()))
    if sum(_bytes(key) + _bytes(value) for key, value in annotations.items()) > ANNOTATIONS_LIMIT:
        faults.append(too_long(path, ANNOTATIONS_LIMIT))
    return faults


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def _owner_references(references: list[OwnerReference], path: str) -> Faults:
    faults = [fault for reference in references for fault in _owner_reference(reference, path)]
    controllers = [reference for reference in references if reference.controller]
    if len(controllers) > 1:  # one fault, which shows all references
        first, second = (f"{reference.kind}/{reference.name}" for reference in controllers[:2])
        detail = (
            'Only one reference can have Controller set to true. Found "true" in references '
            f"for {first} and {second}"
        )
        faults.append(invalid(path, references, detail))
    return faults


def _owner_reference(reference: OwnerReference, path: str) -> Faults:
    faults: Faults = []
    if not reference.api_version.rpartition("/")[2]:
        detail = "version must not be empty"
        faults.append(invalid(f"{path}.apiVersion", reference.api_version, detail))
    for field, value in (
        ("kind", reference.kind),
        ("name", reference.name),
        ("uid", reference.uid),
    ):
        if not value:
            faults.append(invalid(f"{path}.{field}", value, "must not be empty"))
    if (reference.api_version, reference.kind) == _BANNED_OWNER:
        detail = "/v1, Kind=Event is disallowed from being an owner"
        faults.append(invalid(path, reference, detail))
    return faults


def _finalizers(finalizers: list[str], path: str) -> Faults:
    faults: Faults = []
    for finalizer in finalizers:
        faults += invalid_all(path, finalizer, key_faults(finalizer))
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        faults.append(invalid(path, finalizers, detail))
    return faults
