"""Validation of the metadata of objects.

Source: staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go and
pkg/apis/meta/v1/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.custom.kinds import CustomObject
from kcm.apimachinery import metadata_checks
from kcm.apimachinery.field_errors import (
    Faults,
    forbidden,
    invalid,
    invalid_all,
    require_unchanged,
    required,
)
from kcm.apimachinery.meta_v1 import (
    KubeObject,
    LabelSelector,
    LabelSelectorRequirement,
    ObjectMeta,
)
from kcm.apimachinery.names import NameFaults

_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def metadata(obj: KubeObject, *, namespaced: bool, name_rule: NameFaults) -> Faults:
    """Checks the metadata of a new object, whose name is already generated."""
    faults = metadata_checks.check(
        obj.metadata, "metadata", namespaced=namespaced, name_rule=name_rule
    )
    return faults + _standard_finalizers(obj)


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
    if not meta.name:
        faults.append(required("metadata.name", metadata_checks.NAME_REQUIRED))
    faults += require_unchanged("metadata.name", meta.name, before.name)
    faults += require_unchanged("metadata.namespace", meta.namespace, before.namespace)
    if meta.uid is not None:
        faults += require_unchanged("metadata.uid", meta.uid, before.uid)
    return (
        faults
        + _set_by_server(meta, before)
        + metadata_checks.check_common(meta, "metadata")
        + _standard_finalizers(new, old)
    )


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
    return invalid_all(path, name, metadata_checks.key_faults(name)) + standard_finalizer(
        name, path
    )


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
    faults = metadata_checks.labels(selector.match_labels, f"{path}.matchLabels")
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
    faults += metadata_checks.label_key(expression.key, f"{path}.key")
    for index, value in enumerate(values):
        faults += invalid_all(
            f"{path}.values[{index}]", value, metadata_checks.label_value_faults(value)
        )
    return faults
