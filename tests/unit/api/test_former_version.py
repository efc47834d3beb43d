"""Objects that an earlier version of kcm has stored in a version that is gone."""

from __future__ import annotations

import json

from kcm.api import codec
from kcm.api.storage_v1 import VolumeAttributesClass
from kcm.api.storagemigration_v1beta1 import SUCCEEDED, StorageVersionMigration, is_true


def test_a_class_of_attributes_is_read_in_the_present_version() -> None:
    former = {"kind": "VolumeAttributesClass", "driverName": "d", "parameters": {"a": "b"}}
    raw = json.dumps({"apiVersion": "storage.k8s.io/v1beta1", **former}).encode()
    read = codec.decode_stored(raw, VolumeAttributesClass.resource)
    assert (read.api_version, read.driver_name) == ("storage.k8s.io/v1", "d")
    again = codec.encode_stored(read, VolumeAttributesClass.resource)
    assert codec.decode_stored(again, VolumeAttributesClass.resource) == read


def test_a_migration_keeps_what_it_was_and_how_it_ended() -> None:
    body = {
        "apiVersion": "storagemigration.k8s.io/v1alpha1",
        "kind": "StorageVersionMigration",
        "spec": {"resource": {"group": "g", "version": "v1", "resource": "r"}},
        "status": {
            "conditions": [
                {"type": SUCCEEDED, "status": "True", "lastUpdateTime": "2026-01-01T00:00:00Z"}
            ]
        },
    }
    raw = json.dumps(body).encode()
    read = codec.decode_stored(raw, StorageVersionMigration.resource)
    assert read.api_version == "storagemigration.k8s.io/v1beta1"
    assert codec.to_dict(read)["spec"] == {"resource": {"group": "g", "resource": "r"}}
    assert is_true(read, SUCCEEDED)
    assert read.status.conditions is not None
    assert read.status.conditions[0].last_transition_time is not None
