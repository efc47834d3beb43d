from __future__ import annotations

import pytest

from kcm.apimachinery.quantity import Quantity
from kcm.errors import ConfigurationError
from kcm.kubelet.eviction.thresholds import parse_thresholds
from kcm.kubelet.node.reserved import parse_reserved, sum_reserved

CAPACITY = {
    "cpu": Quantity(4), "memory": Quantity("8Gi"), "ephemeral-storage": Quantity("100Gi"),
    "pods": Quantity(110),
}  # fmt: skip


@pytest.mark.parametrize(
    ("system", "kube", "hard", "expected"),
    [
        ("", "", "", {}),
        ("cpu=500m,memory=1Gi", "", "", {"cpu": "500m", "memory": "1Gi"}),
        ("cpu=500m", "cpu=1", "", {"cpu": "1500m"}),
        ("memory=1Gi", "memory=1Gi", "memory.available<512Mi", {"memory": "2560Mi"}),
        ("", "", "nodefs.available<10%", {"ephemeral-storage": "10Gi"}),
        ("", "", "pid.available<1000,nodefs.inodesFree<5%", {}),
        ("memory=100Gi,pid=1000", "", "", {"memory": "8Gi"}),
    ],
)
def test_what_pods_do_not_get_is_the_sum(
    system: str, kube: str, hard: str, expected: dict[str, str]
) -> None:
    reserved = [parse_reserved("system-reserved", system), parse_reserved("kube-reserved", kube)]
    reserved_sum = sum_reserved(CAPACITY, reserved, parse_thresholds(hard, "", {}, ""))
    assert reserved_sum == {name: Quantity(amount) for name, amount in expected.items()}


def test_soft_thresholds_take_nothing_away() -> None:
    soft = parse_thresholds("", "memory.available<1Gi", {"memory.available": 30.0}, "")
    assert sum_reserved(CAPACITY, [], soft) == {}


@pytest.mark.parametrize("text", ["cpu", "gpu=1", "cpu=much", "cpu=-1"])
def test_what_cannot_be_reserved_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--system-reserved"):
        parse_reserved("system-reserved", text)
