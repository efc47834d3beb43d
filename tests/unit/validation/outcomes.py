"""What the rules say, as text."""

from __future__ import annotations

from typing import Any

from kcm.apimachinery.meta_v1 import KubeObject
from kcm.validation import validate_create, validate_status_update, validate_update
from tests.samples import sample, with_spec


def created(name: str, **changes: Any) -> list[str]:
    """The faults of a new sample with other top-level fields."""
    return texts(validate_create(sample(name, **changes)))


def created_with(name: str, **spec: Any) -> list[str]:
    """The faults of a new sample with other fields of the spec."""
    return texts(validate_create(with_spec(name, **spec)))


def updated(new: KubeObject, old: KubeObject) -> list[str]:
    return texts(validate_update(new, old))


def status_updated(new: KubeObject, old: KubeObject) -> list[str]:
    return texts(validate_status_update(new, old))


def texts(faults: list[Any]) -> list[str]:
    return [str(fault) for fault in faults]
