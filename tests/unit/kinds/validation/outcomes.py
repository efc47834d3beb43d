"""Results of validation as text."""

from __future__ import annotations

from typing import Any

from kcm.apimachinery.meta_v1 import KubeObject
from kcm.kinds.validation import validate_create, validate_status_update, validate_update
from tests.samples import sample, with_spec


def validate_new(name: str, **changes: Any) -> list[str]:
    """Returns the faults of a new sample with other top-level fields."""
    return texts(validate_create(sample(name, **changes)))


def validate_new_spec(name: str, **spec: Any) -> list[str]:
    """Returns the faults of a new sample with other fields of the spec."""
    return texts(validate_create(with_spec(name, **spec)))


def validate_changed(new: KubeObject, old: KubeObject) -> list[str]:
    return texts(validate_update(new, old))


def validate_changed_status(new: KubeObject, old: KubeObject) -> list[str]:
    return texts(validate_status_update(new, old))


def texts(faults: list[Any]) -> list[str]:
    return [str(fault) for fault in faults]
