"""Volumes have upstream's names in the statuses of nodes, and in VolumeAttachments."""

from __future__ import annotations

import hashlib

from kcm.api.volumes.attachments import attachment_name, name_for_node, unique_volume_name
from kcm.testing.storage_builders import csi_volume, volume


def test_an_attachment_is_named_by_the_hash_of_volume_driver_and_node() -> None:
    # TestAttacherAttach in pkg/volume/csi/csi_attacher_test.go
    digest = hashlib.sha256(b"vol-01disks.example.comn1").hexdigest()
    assert attachment_name("disks.example.com", "vol-01", "n1") == f"csi-{digest}"


def test_a_node_lists_a_volume_by_driver_and_handle() -> None:
    name = "kubernetes.io/csi/disks.example.com^vol-01"
    assert unique_volume_name(csi_volume("disk", handle="vol-01")) == name
    assert unique_volume_name(volume()) == ""


def test_the_attachment_is_found_by_what_a_node_lists() -> None:
    listed = "kubernetes.io/csi/disks.example.com^vol^01"
    assert name_for_node(listed, "n1") == attachment_name("disks.example.com", "vol^01", "n1")
    assert name_for_node("kubernetes.io/aws-ebs/vol-1", "n1") == ""
    assert name_for_node("kubernetes.io/csi/without-a-handle", "n1") == ""
