"""VolumeAttachments, CSIDrivers, CSINodes, CSIStorageCapacities and VolumeAttributesClasses.

The cases are those of pkg/apis/storage/validation/validation_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.samples import sample, with_spec
from tests.unit.kinds.validation.outcomes import (
    validate_changed,
    validate_changed_status,
    validate_new,
    validate_new_spec,
)

ATTACHMENTS, DRIVERS = "volumeattachments.storage.k8s.io", "csidrivers.storage.k8s.io"
NODES, CAPACITIES = "csinodes.storage.k8s.io", "csistoragecapacities.storage.k8s.io"
ATTRIBUTES = "volumeattributesclasses.storage.k8s.io"
INLINE = {"csi": {"driver": "a.b", "volumeHandle": "v"}, "accessModes": ["ReadWriteOnce"]}
ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
DRIVER = {"name": "a.b", "nodeID": "n"}


# TestVolumeAttachmentValidation, TestVolumeAttachmentValidationV1
@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({}, ""),
        ({"source": {"inlineVolumeSpec": INLINE}}, ""),
        ({"attacher": ""}, "spec.attacher: Required value"),
        ({"attacher": "a/b"}, "spec.attacher: Invalid value"),
        ({"nodeName": ""}, "spec.nodeName: Invalid value"),
        ({"source": {}}, f"spec.source: Required value: {ONE_SOURCE}"),
        ({"source": {"inlineVolumeSpec": INLINE, "persistentVolumeName": "v"}},
         f"spec.source: Forbidden: {ONE_SOURCE}"),
        ({"source": {"inlineVolumeSpec": {**INLINE, "storageClassName": "s"}}},
         "spec.source.inlineVolumeSpec.storageClassName: Forbidden"),
        ({"source": {"inlineVolumeSpec": {"accessModes": ["ReadWriteOnce"]}}},
         "spec.source.inlineVolumeSpec.csi: Required value"),
    ],
)  # fmt: skip
def test_attachments(spec: dict[str, Any], fault: str) -> None:
    found = validate_new_spec(ATTACHMENTS, **spec)
    assert bool(found) == bool(fault)
    assert not found or found[0].startswith(fault)


# TestVolumeAttachmentUpdateValidation
def test_the_spec_of_an_attachment_stays_and_its_status_may_change() -> None:
    old = sample(ATTACHMENTS).with_metadata(resource_version="1", uid="u")
    other = old.with_spec(old.spec.replace(node_name="other"))
    assert validate_changed(other, old)[0].startswith("spec: Invalid value")
    attached = old.with_status(old.status.replace(attached=True))
    assert validate_changed_status(attached, old) == []
    loud = {"attachError": {"message": "x" * 1025}, "attachmentMetadata": {"k": "x" * 262_144}}
    noisy = sample(ATTACHMENTS, status=loud).with_metadata(resource_version="1", uid="u")
    assert validate_changed_status(noisy, old) == [
        "status.attachmentMetadata: Too long: may not be more than 262144 bytes",
        "status.attachError.message: Too long: may not be more than 262144 bytes",
    ]


# TestCSIDriverValidation
@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        ({}, []),
        ({"volumeLifecycleModes": ["Persistent", "Ephemeral"], "fsGroupPolicy": "File"}, []),
        ({"fsGroupPolicy": "x"},
         ['spec.fsGroupPolicy: Unsupported value: "x": supported values: "File", "None", '
          '"ReadWriteOnceWithFSType"']),
        ({"volumeLifecycleModes": ["x"]},
         ['spec.volumeLifecycleModes: Unsupported value: "x": supported values: "Persistent", '
          '"Ephemeral"']),
        ({"tokenRequests": [{"audience": "a"}, {"audience": "a"}]},
         ['spec.tokenRequests[1].audience: Duplicate value: "a"']),
        ({"tokenRequests": [{"audience": "a", "expirationSeconds": 10}]},
         ["spec.tokenRequests[0].expirationSeconds: Invalid value: 10: may not specify a "
          "duration less than 10 minutes"]),
    ],
)  # fmt: skip
def test_drivers(spec: dict[str, Any], faults: list[str]) -> None:
    assert validate_new_spec(DRIVERS, **spec) == faults


# TestCSIDriverValidationUpdate
def test_whether_a_driver_attaches_and_its_modes_stay() -> None:
    old = sample(DRIVERS).with_metadata(resource_version="1", uid="u")
    new = old.with_spec(
        old.spec.replace(
            attach_required=True, volume_lifecycle_modes=["Ephemeral"], pod_info_on_mount=True
        )
    )
    assert [text.split(":")[0] for text in validate_changed(new, old)] == [
        "spec.attachedRequired",
        "spec.volumeLifecycleModes",
    ]


# SetDefaults_CSIDriver, and dropDisabledFields of its strategy
def test_a_driver_is_completed_as_upstream_does() -> None:
    spec = sample(DRIVERS, spec={"nodeAllocatableUpdatePeriodSeconds": 20}).spec
    assert spec.attach_required is True
    assert (spec.pod_info_on_mount, spec.storage_capacity) == (False, False)
    assert (spec.requires_republish, spec.se_linux_mount) == (False, False)
    assert spec.fs_group_policy == "ReadWriteOnceWithFSType"
    assert spec.volume_lifecycle_modes == ["Persistent"]
    assert spec.node_allocatable_update_period_seconds == 20


def test_a_field_of_a_driver_whose_gate_is_off_is_dropped() -> None:
    spec = sample(DRIVERS, spec={"preventPodSchedulingIfMissing": True}).spec
    assert spec.prevent_pod_scheduling_if_missing is None


# TestCSINodeValidation
@pytest.mark.parametrize(
    ("drivers", "faults"),
    [
        ([DRIVER], []),
        ([DRIVER, {"name": "c.d", "nodeID": "n", "topologyKeys": ["a/b"]}], []),
        ([{**DRIVER, "nodeID": ""}], ["spec.drivers[0].nodeID: Required value"]),
        ([{**DRIVER, "nodeID": "n" * 257}],
         [f'spec.drivers[0].nodeID: Invalid value: "{"n" * 257}": must be 256 characters or '
          "less"]),
        ([DRIVER, DRIVER], ['spec.drivers[1].name: Duplicate value: "a.b"']),
        ([{**DRIVER, "topologyKeys": ["k", "k"]}], ['spec.drivers[0]: Duplicate value: "k"']),
        ([{**DRIVER, "allocatable": {"count": -1}}],
         ["spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal "
          "to 0"]),
    ],
)  # fmt: skip
def test_drivers_of_nodes(drivers: list[dict[str, Any]], faults: list[str]) -> None:
    assert validate_new_spec(NODES, drivers=drivers) == faults


# TestCSINodeUpdateValidation
def test_a_driver_of_a_node_may_come_and_go_but_not_change() -> None:
    old = with_spec(NODES, drivers=[DRIVER]).with_metadata(resource_version="1", uid="u")
    more = with_spec(NODES, drivers=[DRIVER, {**DRIVER, "name": "c.d"}])
    none = with_spec(NODES, drivers=[])
    other = with_spec(NODES, drivers=[{**DRIVER, "nodeID": "m"}])
    for new, faults in ((more, 0), (none, 0), (other, 1)):
        changed = new.with_metadata(resource_version="1", uid="u")
        assert len(validate_changed(changed, old)) == faults


# TestCSIStorageCapacity
def test_capacities() -> None:
    assert validate_new(CAPACITIES, storageClassName="-")[0].startswith("storageClassName: ")
    assert validate_new(CAPACITIES, capacity="-1") == [
        'capacity: Invalid value: "-1": must be greater than or equal to 0'
    ]
    old = sample(CAPACITIES).with_metadata(resource_version="1", uid="u")
    moved = old.replace(node_topology=None, storage_class_name="slow")
    assert [text.split(":")[0] for text in validate_changed(moved, old)] == [
        "nodeTopology",
        "storageClassName",
    ]


# TestValidateVolumeAttributesClass, TestValidateVolumeAttributesClassUpdate
def test_classes_of_attributes() -> None:
    assert validate_new(ATTRIBUTES, driverName="") == ["driverName: Required value"]
    assert validate_new(ATTRIBUTES, parameters={}) == [
        "parameters: Required value: must contain at least one key/value pair"
    ]
    old = sample(ATTRIBUTES).with_metadata(resource_version="1", uid="u")
    new = old.replace(driver_name="c.d", parameters={"iops": "1"})
    assert validate_changed(new, old) == [
        "driverName: Forbidden: updates to driverName are forbidden.",
        "parameters: Forbidden: updates to parameters are forbidden.",
    ]


def test_a_driver_waits_ten_seconds_and_puts_requested_tokens_in_secrets() -> None:
    assert validate_new_spec(DRIVERS, nodeAllocatableUpdatePeriodSeconds=9) == [
        "spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be greater than or equal "
        "to 10 seconds"
    ]
    tokens = [{"audience": "a"}]
    assert not validate_new_spec(DRIVERS, serviceAccountTokenInSecrets=True, tokenRequests=tokens)
    assert validate_new_spec(DRIVERS, serviceAccountTokenInSecrets=True, tokenRequests=[])


def test_how_many_volumes_a_node_takes_may_change() -> None:
    old = with_spec(NODES, drivers=[{**DRIVER, "allocatable": {"count": 1}}])
    new = with_spec(NODES, drivers=[{**DRIVER, "allocatable": {"count": 2}}])
    assert not validate_changed(new, old)
    assert validate_changed(with_spec(NODES, drivers=[{**DRIVER, "nodeID": "m"}]), old)
