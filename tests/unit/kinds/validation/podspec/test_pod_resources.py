"""Requests and limits of a pod as a whole."""

from typing import Any

import pytest

from tests.unit.kinds.validation.podspec.faults import of_spec


def build_container(**resources: Any) -> dict[str, Any]:
    return {"name": "c", "image": "i", "resources": resources}


# TestValidatePodResourceConsistency (validation_test.go)
@pytest.mark.parametrize(
    ("whole", "container", "faults"),
    [
        ({"limits": {"cpu": "2"}}, {"requests": {"cpu": "1"}}, []),
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "2"}},
         ['requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate container '
          "requests of 2"]),
        ({"limits": {"memory": "1Gi"}}, {"limits": {"memory": "2Gi"}, "requests": {"memory": "0"}},
         ['containers[0][memory].limits: Invalid value: "2Gi": must be less than or equal to pod '
          "limits of 1Gi"]),
        ({"limits": {"ephemeral-storage": "1Gi"}}, {},
         ['limits[ephemeral-storage]: Unsupported value: "ephemeral-storage": supported values: '
          '"cpu", "hugepages-", "memory"']),
        ({"claims": [], "limits": {"cpu": "1"}}, {},
         ["claims: Forbidden: claims may not be set for Resources at pod-level"]),
    ],
)  # fmt: skip
def test_amounts_of_a_pod_are_checked_in_upstreams_words(
    whole: dict[str, Any], container: dict[str, Any], faults: list[str]
) -> None:
    found = of_spec(resources=whole, containers=[build_container(**container)])
    assert [fault.removeprefix("spec.resources.") for fault in found] == faults


def test_windows_pods_have_none() -> None:
    found = of_spec(os={"name": "windows"}, resources={"limits": {"cpu": "1"}})
    assert "spec.resources: Forbidden: may not be set for a windows pod" in found
