"""Validation of the metadata of objects.

Source: staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go and
pkg/apis/meta/v1/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.custom.kinds import CustomObject
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    Faults,
    forbidden,
    invalid,
    invalid_all,
    not_negative,
    require_unchanged,
    required,
    too_long,
)
from kcm.apimachinery.meta_v1 import (
    KubeObject,
    LabelSelector,
    LabelSelectorRequirement,
    ObjectMeta,
    OwnerReference,
)
from kcm.apimachinery.names import NameFaults

ANNOTATIONS_LIMIT = 256 * 1024  # bytes, keys and values together
_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_BANNED_OWNER = ("v1", "Event")


# All pods of a workload have the same few keys and values.
@lru_cache(maxsize=4096)
def _key_faults(text: str) -> tuple[str, ...]:
    return tuple(names.qualified_name_faults(text))


@lru_cache(maxsize=4096)
def _value_faults(text: str) -> tuple[str, ...]:
    return tuple(names.label_value_faults(text))


def metadata(obj: KubeObject, *, namespaced: bool, name_rule: NameFaults) -> Faults:
    """Checks the metadata of a new object, whose name is already generated."""
    meta = obj.metadata
    faults: Faults = []
    if meta.generate_name:
        masked = _mask_trailing_dash(meta.generate_name)
        faults += invalid_all("metadata.generateName", meta.generate_name, name_rule(masked))
    if not meta.name:
        faults.append(required("metadata.name", "name or generateName is required"))
    else:
        faults += invalid_all("metadata.name", meta.name, name_rule(meta.name))
    return faults + _namespace(meta, namespaced) + _common(meta) + _standard_finalizers(obj)


def _common(meta: ObjectMeta) -> Faults:
    return [
        *not_negative("metadata.generation", meta.generation),
        *labels(meta.labels, "metadata.labels"),
        *annotation_map(meta.annotations, "metadata.annotations"),
        *_owner_references(meta.owner_references or []),
        *_finalizers(meta.finalizers or []),
    ]


def _mask_trailing_dash(name: str) -> str:
    """Returns a prefix without its last dash, which is valid because more characters follow."""
    return name[:-2] + "a" if len(name) > 1 and name.endswith("-") else name


def _namespace(meta: ObjectMeta, namespaced: bool) -> Faults:
    if not namespaced:
        return (
            [forbidden("metadata.namespace", "not allowed on this type")] if meta.namespace else []
        )
    if not meta.namespace:
        return [required("metadata.namespace")]
    return invalid_all("metadata.namespace", meta.namespace, names.label_faults(meta.namespace))


def metadata_update(new: KubeObject, old: KubeObject) -> Faults:
    """Checks the metadata of a changed object against the old metadata.

    An absent uid, generation or deletion timestamp counts as unchanged. The store checks the
    resourceVersion.
    """
    meta, before = new.metadata, old.metadata
    faults: Faults = []
    if before.deletion_timestamp is not None:
        faults += _new_finalizers(meta.finalizers or [], before.finalizers or [])
    if (meta.generation or 0) < (before.generation or 0) and meta.generation is not None:
        faults.append(invalid("metadata.generation", meta.generation, "must not be decremented"))
    faults += require_unchanged("metadata.name", meta.name, before.name)
    faults += require_unchanged("metadata.namespace", meta.namespace, before.namespace)
    if meta.uid is not None:
        faults += require_unchanged("metadata.uid", meta.uid, before.uid)
    return faults + _set_by_server(meta, before) + _common(meta) + _standard_finalizers(new, old)


def _set_by_server(meta: ObjectMeta, before: ObjectMeta) -> Faults:
    """Checks that the fields that only the server sets are absent or unchanged."""
    fields = {
        "creationTimestamp": (meta.creation_timestamp, before.creation_timestamp),
        "deletionTimestamp": (meta.deletion_timestamp, before.deletion_timestamp),
        "deletionGracePeriodSeconds": (
            meta.deletion_grace_period_seconds,
            before.deletion_grace_period_seconds,
        ),
    }
    return [
        fault
        for field, (value, was) in fields.items()
        if value is not None
        for fault in require_unchanged(f"metadata.{field}", value, was)
    ]


def labels(label_map: Mapping[str, str] | None, path: str) -> Faults:
    faults: Faults = []
    for key, value in (label_map or {}).items():
        faults += invalid_all(path, key, _key_faults(key))
        faults += invalid_all(path, value, _value_faults(value))
    return faults


def label_key(key: str, path: str) -> Faults:
    return invalid_all(path, key, _key_faults(key))


def label_value_faults(value: str) -> tuple[str, ...]:
    return _value_faults(value)


def annotation_map(annotations: Mapping[str, str] | None, path: str) -> Faults:
    if not annotations:
        return []
    faults: Faults = []
    for key in annotations:
        # A qualified name, except that case does not matter.
        faults += invalid_all(path, key, _key_faults(key.lower()))
    if sum(_bytes(key) + _bytes(value) for key, value in annotations.items()) > ANNOTATIONS_LIMIT:
        faults.append(too_long(path, ANNOTATIONS_LIMIT))
    return faults


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def _owner_references(references: list[OwnerReference]) -> Faults:
    path = "metadata.ownerReferences"
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


def _finalizers(finalizers: list[str]) -> Faults:
    path = "metadata.finalizers"
    faults: Faults = []
    for finalizer in finalizers:
        faults += invalid_all(path, finalizer, _key_faults(finalizer))
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        faults.append(invalid(path, finalizers, detail))
    return faults


def _standard_finalizers(obj: KubeObject, old: KubeObject | None = None) -> Faults:
    """Checks that the finalizers of a built-in kind are standard ones or have a domain, except
    those that the object has already.
    """
    if not obj.metadata.finalizers or isinstance(obj, CustomObject | CustomResourceDefinition):
        return []
    stored = frozenset((old.metadata.finalizers if old is not None else None) or ())
    return [
        fault
        for index, name in enumerate(obj.metadata.finalizers)
        if name not in stored
        for fault in standard_finalizer(name, f"metadata.finalizers[{index}]")
    ]


def finalizer(name: str, path: str) -> Faults:
    """Checks a finalizer: it must be a qualified name, and without a prefix a standard one."""
    return invalid_all(path, name, _key_faults(name)) + standard_finalizer(name, path)


def standard_finalizer(name: str, path: str) -> Faults:
    if "/" in name or name in _STANDARD_FINALIZERS:
        return []
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    return [invalid(path, name, detail)]


def _new_finalizers(new: list[str], old: list[str]) -> Faults:
    extra = sorted(set(new) - set(old))
    if not extra:
        return []
    listed = ", ".join(f'"{name}"' for name in extra)
    return [
        forbidden(
            "metadata.finalizers",
            "no new finalizers can be added if the object is being deleted, "
            f"found new finalizers []string{{{listed}}}",
        )
    ]


def label_selector(selector: LabelSelector, path: str) -> Faults:
    faults = labels(selector.match_labels, f"{path}.matchLabels")
    for index, expression in enumerate(selector.match_expressions or ()):
        faults += _expression(expression, f"{path}.matchExpressions[{index}]")
    return faults


def _expression(expression: LabelSelectorRequirement, path: str) -> Faults:
    values = expression.values or []
    faults: Faults = []
    if expression.operator in {"In", "NotIn"}:
        if not values:
            detail = "must be specified when `operator` is 'In' or 'NotIn'"
            faults.append(required(f"{path}.values", detail))
    elif expression.operator in {"Exists", "DoesNotExist"}:
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            faults.append(forbidden(f"{path}.values", detail))
    else:
        detail = "not a valid selector operator"
        faults.append(invalid(f"{path}.operator", expression.operator, detail))
    faults += label_key(expression.key, f"{path}.key")
    for index, value in enumerate(values):
        faults += invalid_all(f"{path}.values[{index}]", value, _value_faults(value))
    return faults
