"""Devices of claims in quotas, with cases of
pkg/quota/v1/evaluator/core/resource_claims_test.go, Kubernetes 1.36.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kcm.kinds.quota.devices import COUNT, tracks, usage
from tests.samples import sample

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GPU, TPU = (f"{name}.deviceclass.resource.k8s.io/devices" for name in ("gpu", "tpu"))


def request(**fields: Any) -> dict[str, Any]:
    return {"deviceClassName": "gpu", **fields}


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([{"name": "r", "exactly": request()}], {GPU: "1"}),
        ([{"name": "r", "exactly": request(count=4)}], {GPU: "4"}),
        ([{"name": "r", "exactly": request(allocationMode="All")}], {GPU: "32"}),
        ([{"name": "r", "exactly": request()}, {"name": "s", "exactly": request()}], {GPU: "2"}),
        ([{"name": "r", "firstAvailable": [
            request(name="a", count=2), request(name="b", count=3),
            request(name="c", deviceClassName="tpu"),
        ]}], {GPU: "3", TPU: "1"}),
    ],
)  # fmt: skip
def test_a_claim_counts_the_most_devices_that_it_may_get(
    requests: list[Any], expected: dict[str, str]
) -> None:
    claim = sample("resourceclaims.resource.k8s.io", spec={"devices": {"requests": requests}})
    found = {name: str(amount) for name, amount in usage(claim, NOW).items()}
    assert found == {COUNT: "1", **expected}


def test_quotas_of_devices_are_for_claims() -> None:
    assert all(map(tracks, (COUNT, GPU, TPU)))
    assert not tracks("requests.cpu")
