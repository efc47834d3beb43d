"""Resource claims of pods, and their use by containers."""

from typing import Any

import pytest

from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.api.core_v1.pods import PodResourceClaim, PodResourceClaimStatus
from kcm.kinds.validation.podspec.claims import claim_statuses
from kcm.kinds.validation.podspec.pods import MIRROR, rules_in_annotations
from tests.unit.kinds.validation.podspec.faults import of_spec

GPU = {"name": "gpu", "resourceClaimName": "mine"}
NEEDS_ONE = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"


# testValidatePodResourceClaims (validation_test.go)
@pytest.mark.parametrize(
    ("claims", "used", "faults"),
    [
        ([GPU], [{"name": "gpu"}], []),
        ([GPU], [{"name": "gpu", "request": "a"}, {"name": "gpu", "request": "b"}], []),
        ([{"name": "", "resourceClaimName": "mine"}], [],
         ["resourceClaims[0].name: Required value"]),
        ([GPU, GPU], [], ['resourceClaims[1].name: Duplicate value: "gpu"']),
        ([{"name": "gpu"}], [],
         ['resourceClaims[0]: Invalid value: map[string]string{"name":"gpu"}: ' + NEEDS_ONE]),
        ([GPU], [{"name": "gpu"}, {"name": "gpu"}],
         ['containers[0].resources.claims[1]: Duplicate value: "gpu"']),
        ([GPU], [{"name": "gpu", "request": "a"}, {"name": "gpu"}],
         ['containers[0].resources.claims[1]: Duplicate value: "gpu"']),
        ([GPU], [{"name": "fpga"}],
         ['containers[0].resources.claims[0]: Not found: "fpga": must be one of the names in '
          "pod.spec.resourceClaims: gpu"]),
        ([], [{"name": "gpu"}],
         ['containers[0].resources.claims[0]: Not found: "gpu": must be one of the names in '
          "pod.spec.resourceClaims which is empty"]),
    ],
)  # fmt: skip
def test_claims_are_checked_in_upstreams_words(
    claims: list[Any], used: list[Any], faults: list[str]
) -> None:
    containers = [{"name": "c", "image": "i", "resources": {"claims": used}}]
    found = of_spec(resourceClaims=claims, containers=containers)
    assert [fault.removeprefix("spec.") for fault in found] == faults


def test_a_claim_is_of_one_source() -> None:
    both = {**GPU, "resourceClaimTemplateName": "t"}
    assert "at most one of `resourceClaimName`" in of_spec(resourceClaims=[both])[0]


def test_a_static_pod_has_no_claims() -> None:
    spec = codec.decode({"spec": {"resourceClaims": [GPU], "nodeName": "n"}}, Pod.resource).spec
    faults = rules_in_annotations({MIRROR: "x"}, spec, "metadata.annotations")
    assert [str(fault) for fault in faults] == [
        "[]: Forbidden: static pods do not support resource claims"
    ]


def test_statuses_are_of_claims_of_the_pod() -> None:
    claims = [PodResourceClaim(name="gpu")]
    statuses = [
        PodResourceClaimStatus(name="gpu", resource_claim_name="-"),
        PodResourceClaimStatus(name="gpu"),
        PodResourceClaimStatus(name="fpga"),
    ]
    assert [fault.field for fault in claim_statuses(statuses, claims, "s")] == [
        "s[0].resourceClaimName",
        "s[1].name",
        "s[2].name",
    ]


def test_a_message_names_some_of_many_claims() -> None:
    claims = [{"name": f"c{number:05}", "resourceClaimName": "mine"} for number in range(10_000)]
    containers = [{"name": "c", "image": "i", "resources": {"claims": [{"name": "other"}]}}]
    (fault,) = of_spec(resourceClaims=claims, containers=containers)
    assert fault.endswith(", c00014, c00015")
