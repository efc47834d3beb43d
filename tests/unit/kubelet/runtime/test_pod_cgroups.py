"""The names of pods' control groups."""

from __future__ import annotations

import pytest

from kcm.kubelet.runtime.pod_cgroups import PodCgroups


@pytest.mark.parametrize(
    ("driver", "qos_class", "name"),
    [
        ("cgroupfs", "", "/kcm/poda-b"),
        ("cgroupfs", "burstable", "/kcm/burstable/poda-b"),
        ("systemd", "", "kcm-poda_b.slice"),
        ("systemd", "besteffort", "kcm-besteffort-poda_b.slice"),
    ],
)
def test_a_pod_is_in_the_group_of_its_class(driver: str, qos_class: str, name: str) -> None:
    assert PodCgroups("kcm", driver, None).parent("a-b", qos_class) == name
