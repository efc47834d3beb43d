"""Which volumes have to be attached, and to how many nodes."""

from __future__ import annotations

import pytest

from kcm.api.core_v1 import PersistentVolume
from kcm.api.storage_v1 import CSIDriver
from kcm.helpers.volumes.attachments import is_attachable, is_shareable
from kcm.testing.storage_builders import csi_driver, csi_volume, volume


@pytest.mark.parametrize(
    ("subject", "driver", "attachable"),
    [
        # TestPluginCanAttach in pkg/volume/csi/csi_plugin_test.go
        (csi_volume(), None, True),
        (csi_volume(), csi_driver(), True),
        (csi_volume(), csi_driver(attach_required=True), True),
        (csi_volume(), csi_driver(attach_required=False), False),
        (volume(), None, False),
    ],
)
def test_volumes_of_csi_drivers_are_attached_unless_the_driver_says_otherwise(
    subject: PersistentVolume, driver: CSIDriver | None, attachable: bool
) -> None:
    assert is_attachable(subject, driver) is attachable


@pytest.mark.parametrize(
    ("modes", "shareable"),
    [
        (None, True),
        (["ReadWriteOnce"], False),
        (["ReadWriteOncePod"], False),
        (["ReadWriteOnce", "ReadOnlyMany"], True),
        (["ReadWriteMany"], True),
    ],
)
def test_a_volume_is_for_one_node_unless_a_mode_says_otherwise(
    modes: list[str] | None, shareable: bool
) -> None:
    # IsMultiAttachAllowed in pkg/volume/util/util.go
    subject = csi_volume()
    changed = subject.with_spec(subject.spec.replace(access_modes=modes))
    assert is_shareable(changed) is shareable
