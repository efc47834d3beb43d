"""What the system adds to new claims and volumes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kcm import errors
from kcm.api.storage_v1 import (
    CLASS_ANNOTATION,
    IS_DEFAULT,
    IS_DEFAULT_BETA,
    StorageClass,
    default_of,
    has_class,
)
from kcm.api.volumes.finalizers import CLAIM_PROTECTION, VOLUME_PROTECTION
from kcm.store.admission.storage import (
    DefaultStorageClass,
    PersistentVolumeClaimResize,
    StorageClasses,
    StorageObjectInUseProtection,
)
from kcm.testing.builders import START
from kcm.testing.clock import FakeClock
from kcm.testing.storage_builders import claim, storage_class, volume
from tests.unit.store.admission.passing import create, update


class ClassReader:
    """A reader of a store that has these classes."""

    def __init__(self, *classes: StorageClass) -> None:
        self.items = classes

    def last_rvs(self, resources: list[Any]) -> dict[Any, int]:
        return dict.fromkeys(resources, len(self.items))

    def list(self, resource: Any) -> ClassReader:
        return self


def default_class(name: str, *, age: float = 0, mark: str = IS_DEFAULT) -> StorageClass:
    made = START - timedelta(seconds=age)
    return storage_class(name, metadata={"annotations": {mark: "true"}, "creation_timestamp": made})


def classes_of(*classes: StorageClass) -> StorageClasses:
    return StorageClasses(ClassReader(*classes), FakeClock())  # type: ignore[arg-type] # all that it reads


# TestAdmit of plugin/pkg/admission/storage/storageobjectinuseprotection/admission_test.go
def test_claims_and_volumes_get_their_finalizers_once() -> None:
    plugin = StorageObjectInUseProtection()
    admitted = create(plugin, claim())
    assert admitted.metadata.finalizers == [CLAIM_PROTECTION]
    assert create(plugin, admitted) is admitted
    kept = create(plugin, volume(metadata={"finalizers": ["a.b/c"]}))
    assert kept.metadata.finalizers == ["a.b/c", VOLUME_PROTECTION]


# TestAdmission of plugin/pkg/admission/storage/storageclass/setdefault/admission_test.go
@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ([], None),
        ([storage_class("plain")], None),
        ([storage_class("plain"), default_class("default1")], "default1"),
        ([default_class("beta", mark=IS_DEFAULT_BETA)], "beta"),
        ([default_class("old", age=10), default_class("new")], "new"),
        ([default_class("b"), default_class("a")], "a"),
    ],
)
def test_a_claim_without_a_class_gets_the_default(
    classes: list[StorageClass], expected: str | None
) -> None:
    admitted = create(DefaultStorageClass(classes_of(*classes)), claim())
    assert admitted.spec.storage_class_name == expected
    found = default_of(classes)
    assert (found.name if found else None) == expected


@pytest.mark.parametrize(
    "named",
    [
        claim(storage_class_name="foo"),
        claim(storage_class_name=""),
        claim(metadata={"annotations": {CLASS_ANNOTATION: "foo"}}),
    ],
)
def test_a_claim_that_names_a_class_keeps_it(named: Any) -> None:
    assert has_class(named)
    admitted: Any = create(DefaultStorageClass(classes_of(default_class("default1"))), named)
    assert admitted.spec.storage_class_name == named.spec.storage_class_name


def test_a_class_that_is_written_here_counts_at_once() -> None:
    reader, clock = ClassReader(), FakeClock()
    classes = StorageClasses(reader, clock)  # type: ignore[arg-type] # all that it reads
    plugin, new = DefaultStorageClass(classes), default_class("new")
    create(plugin, claim())
    reader.items = (new,)
    clock.step(0.1)
    assert create(plugin, claim()).spec.storage_class_name is None
    create(plugin, new)
    assert create(plugin, claim()).spec.storage_class_name == "new"


# TestPVCResizeAdmission of plugin/pkg/admission/storage/persistentvolume/resize/admission_test.go
@pytest.mark.parametrize(
    ("size", "phase", "storage", "why"),
    [
        ("2Gi", "Bound", "growing", ""),
        ("1Gi", "Bound", "fixed", ""),  # it asks for no more
        ("2Gi", "Pending", "growing", "Only bound persistent volume claims can be expanded"),
        ("2Gi", "Bound", "fixed", "only dynamically provisioned pvc can be resized"),
        ("2Gi", "Bound", "missing", "only dynamically provisioned pvc can be resized"),
        ("2Gi", "Bound", "", "only dynamically provisioned pvc can be resized"),
    ],
)
def test_a_claim_grows_if_it_is_bound_and_its_class_allows_it(
    size: str, phase: str, storage: str, why: str
) -> None:
    classes = storage_class("growing", allow_volume_expansion=True), storage_class("fixed")
    old = claim(size="1Gi", status={"phase": phase}, storage_class_name=storage)
    new = claim(size=size, status={"phase": phase}, storage_class_name=storage)
    plugin = PersistentVolumeClaimResize(classes_of(*classes))
    if not why:
        update(plugin, new, old)
        return
    with pytest.raises(errors.Forbidden, match=why):
        update(plugin, new, old)
