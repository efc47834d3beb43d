"""The status of claims, with cases of
pkg/apis/resource/validation/validation_resourceclaim_test.go, Kubernetes 1.36.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.samples import sample
from tests.unit.kinds.validation.outcomes import validate_changed_status

CLAIMS = "resourceclaims.resource.k8s.io"
POD = {"resource": "pods", "name": "p", "uid": "1"}
RESULT = {"request": "gpu", "driver": "d", "pool": "p", "device": "x"}
DEVICE = {"driver": "d", "pool": "p", "device": "x"}
ALLOCATED = {"devices": {"results": [RESULT]}}


def build_claim(*, deleted: bool = False, **status: Any) -> Any:
    claim = sample(CLAIMS, status=status).with_metadata(resource_version="1")
    if not deleted:
        return claim
    moment = sample(
        CLAIMS,
        metadata={"name": "a", "namespace": "b", "creationTimestamp": "2026-01-01T00:00:00Z"},
    )
    return claim.with_metadata(deletion_timestamp=moment.metadata.creation_timestamp)


def faults_of(old: Any, **status: Any) -> list[str]:
    deleted = old.deleting
    found = validate_changed_status(build_claim(deleted=deleted, **status), old)
    return [fault.removeprefix("status.") for fault in found]


NEW = build_claim()


@pytest.mark.parametrize(
    ("status", "faults"),
    [
        ({"allocation": ALLOCATED, "reservedFor": [POD]}, []),
        ({"reservedFor": [POD]},
         ["reservedFor: Forbidden: may not be specified when `allocated` is not set"]),
        ({"allocation": ALLOCATED, "reservedFor": [POD, POD]},
         ['reservedFor[1]: Duplicate value: "1"']),
        ({"allocation": ALLOCATED, "reservedFor": [{"resource": "pods", "name": "", "uid": "1"}]},
         ["reservedFor[0].name: Required value"]),
        ({"allocation": {"devices": {"results": [{**RESULT, "request": "x"}]}}},
         ['allocation.devices.results[0].request: Invalid value: "x": must be the name of a '
          "request in the claim or the name of a request and a subrequest separated by '/'"]),
        ({"allocation": {"devices": {"results": [{**RESULT, "pool": ""}]}}},
         ["allocation.devices.results[0].pool: Required value"]),
        ({"allocation": {"devices": {"results": [{**RESULT, "bindingConditions": ["a"]}]}}},
         ["allocation.devices.results[0].bindingFailureConditions: Invalid value: []: "
          "bindingFailureConditions are required to use bindingConditions"]),
        ({"allocation": {"devices": {"config": [{"source": "x", "opaque": {
            "driver": "d", "parameters": {}}}]}}},
         ['allocation.devices.config[0].source: Unsupported value: "x": supported values: '
          '"FromClaim", "FromClass"']),
        ({"allocation": ALLOCATED, "devices": [DEVICE]}, []),
        ({"devices": [DEVICE]},
         ['devices[0]: Invalid value: "d/p/x": must be an allocated device in the claim']),
        ({"allocation": ALLOCATED, "devices": [{**DEVICE, "networkData": {"ips": ["10.9.8.7"]}}]},
         ['devices[0].networkData.ips[0]: Invalid value: "10.9.8.7": must be a valid address in '
          "CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"]),
        ({"allocation": ALLOCATED,
          "devices": [{**DEVICE, "networkData": {"interfaceName": "x" * 257}}]},
         ["devices[0].networkData.interfaceName: Too long: may not be more than 256 bytes"]),
    ],
)  # fmt: skip
def test_a_status_is_checked_in_upstreams_words(status: Any, faults: list[str]) -> None:
    assert faults_of(NEW, **status) == faults


def test_an_allocation_does_not_change_but_may_go() -> None:
    old = build_claim(allocation=ALLOCATED)
    assert faults_of(old) == []
    other = {"devices": {"results": [{**RESULT, "device": "y"}]}}
    [fault] = faults_of(old, allocation=other)
    assert fault.startswith("allocation: Invalid value")


def test_a_claim_that_is_deleted_gets_no_new_consumers() -> None:
    old = build_claim(deleted=True, allocation=ALLOCATED, reservedFor=[POD])
    assert faults_of(old, allocation=ALLOCATED, reservedFor=[POD]) == []
    other = {**POD, "uid": "2"}
    [fault] = faults_of(old, allocation=ALLOCATED, reservedFor=[POD, other])
    assert "new entries may not be added" in fault
