from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kcm.apimachinery.quantity import Quantity
from kcm.errors import ConfigurationError
from kcm.kubelet.duty_options import DutyOptions, of_flags


def test_without_flags_the_defaults_are_upstreams() -> None:
    options = of_flags({})
    assert options == DutyOptions()
    assert [one.signal.value for one in options.eviction.thresholds] == [
        "memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available",
        "imagefs.inodesFree",
    ]  # fmt: skip
    assert (options.eviction.transition, options.shutdown, options.certificate) == (300.0, (), None)


def test_flags_are_taken(tmp_path: Path) -> None:
    for name in ("crt", "key"):
        (tmp_path / name).touch()
    options = of_flags(
        {
            "eviction_hard": "",
            "eviction_soft": "memory.available<1Gi",
            "eviction_soft_grace_period": {"memory.available": 60.0},
            "eviction_pressure_transition_period": 30.0,
            "eviction_max_pod_grace_period": 5,
            "system_reserved": "cpu=1",
            "shutdown_grace_period": 30.0,
            "shutdown_grace_period_critical_pods": 10.0,
            "bind_address": "0.0.0.0",
            "tls_cert_file": str(tmp_path / "crt"),
            "tls_private_key_file": str(tmp_path / "key"),
        }
    )
    (threshold,) = options.eviction.thresholds
    assert (threshold.grace, options.eviction.most_grace) == (60.0, 5)
    assert options.system_reserved == {"cpu": Quantity(1)}
    assert [group.seconds for group in options.shutdown] == [20, 10]
    assert not options.own_port
    assert of_flags({"port": 0}).own_port
    assert options.certificate == (tmp_path / "crt", tmp_path / "key")


@pytest.mark.parametrize(
    "flags",
    [
        {"tls_cert_file": "/nowhere"},
        {"tls_cert_file": "/nowhere", "tls_private_key_file": "/nowhere"},
        {"eviction_hard": "x"},
        {"shutdown_grace_period": 1.0, "shutdown_grace_period_critical_pods": 2.0},
    ],
)
def test_flags_that_do_not_fit_are_refused(flags: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        of_flags(flags)
