"""Slices, with cases of pkg/apis/resource/validation/validation_resourceslice_test.go, Kubernetes
1.36.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.samples import sample
from tests.unit.kinds.validation.outcomes import validate_changed, validate_new_spec

SLICES = "resourceslices.resource.k8s.io"
PLACES = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)
SHARED = {"name": "a", "allowMultipleAllocations": True}


def faults_of(**spec: Any) -> list[str]:
    return [fault.removeprefix("spec.") for fault in validate_new_spec(SLICES, **spec)]


def faults_of_device(**fields: Any) -> list[str]:
    found = faults_of(devices=[{"name": "a", **fields}])
    return [fault.removeprefix("devices[0].") for fault in found]


def policy(**fields: Any) -> dict[str, Any]:
    return {**SHARED, "capacity": {"memory": {"value": "8Gi", "requestPolicy": fields}}}


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        ({}, []),
        ({"nodeName": None, "allNodes": True}, []),
        ({"nodeName": None}, [f"spec: Required value: {PLACES}"]),
        ({"allNodes": True},
         [f'spec: Invalid value: "{{`nodeName`, `allNodes`}}": {PLACES}, but multiple fields are '
          "set"]),
        ({"nodeName": None, "nodeSelector": {"nodeSelectorTerms": []}},
         ["nodeSelector.nodeSelectorTerms: Required value: must have at least one node selector "
          "term",
          "nodeSelector.nodeSelectorTerms: Invalid value: []: must have exactly one node selector "
          "term"]),
        ({"driver": "d" * 64}, ["driver: Too long: may not be more than 63 bytes"]),
        ({"pool": {"name": "", "resourceSliceCount": 0, "generation": -1}},
         ["pool.name: Required value",
          "pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
          "pool.generation: Invalid value: -1: must be greater than or equal to zero"]),
        ({"devices": [{"name": "a"}, {"name": "a"}]}, ['devices[1]: Duplicate value: "a"']),
        ({"devices": [{"name": f"d{n}"} for n in range(129)]},
         ["devices: Too many: 129: must have at most 128 items"]),
        ({"devices": [{"name": f"d{n}", "taints": [{"key": "a", "effect": "None"}]}
                      for n in range(65)]},
         ["devices: Too many: 65: must have at most 64 items"]),
        ({"sharedCounters": [{"name": "c", "counters": {"m": {"value": "1"}}}]},
         ['spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed']),
        ({"devices": None, "sharedCounters": [{"name": ""}]},
         ["sharedCounters[0].name: Required value", "sharedCounters[0].counters: Required value"]),
    ],
)  # fmt: skip
def test_a_slice_is_checked_in_upstreams_words(spec: Any, faults: list[str]) -> None:
    assert faults_of(**spec) == faults


@pytest.mark.parametrize(
    ("device", "faults"),
    [
        ({"attributes": {"a": {"int": 1}, "d.e/b": {"version": "1.2.3-rc.1"}}}, []),
        ({"attributes": {"a": {}}},
         ['attributes[a]: Invalid value: "": exactly one value must be specified']),
        ({"attributes": {"a": {"version": "1.2"}}},
         ['attributes[a].version: Invalid value: "1.2": must be a string compatible with '
          "semver.org spec 2.0.0"]),
        ({"attributes": {"a": {"string": "x" * 65}}},
         ["attributes[a].string: Too long: may not be more than 64 bytes"]),
        ({"attributes": {f"a{n}": {"int": 1} for n in range(33)}},
         ["devices[0]: Invalid value: 33: the total number of attributes and capacities must not "
          "exceed 32"]),
        ({"attributes": {"/a": {"int": 1}}},
         ['attributes: Invalid value: "": the domain must not be empty']),
        ({"taints": [{"key": "a"}]}, ["taints[0].effect: Required value"]),
        ({"nodeName": "n"},
         ["devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be "
          "set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"]),
        ({"capacity": {"m": {"value": "1", "requestPolicy": {}}}},
         ["capacity[m].requestPolicy: Forbidden: allowMultipleAllocations must be true"]),
        ({"consumesCounters": [{"counterSet": "c"}]},
         ["consumesCounters[0].counters: Required value"]),
        ({"bindingConditions": ["a"], "bindingFailureConditions": ["a"]},
         ['bindingFailureConditions[0]: Invalid value: "a": bindingFailureConditions must not '
          "overlap with bindingConditions"]),
    ],
)  # fmt: skip
def test_a_device_is_checked_in_upstreams_words(device: Any, faults: list[str]) -> None:
    assert faults_of_device(**device) == faults


@pytest.mark.parametrize(
    ("fields", "faults"),
    [
        ({"default": "1Gi", "validValues": ["1Gi", "2Gi"]}, []),
        ({"validValues": ["1Gi"]},
         ["default: Required value: required when validValues is defined"]),
        ({"default": "3Gi", "validValues": ["2Gi", "1Gi", "9Gi"]},
         ['validValues[1]: Invalid value: "1Gi": values must be sorted in ascending order',
          'validValues[2]: Invalid value: "9Gi": option is larger than capacity value: 8Gi',
          'validValues: Invalid value: "3Gi": default value is not valid according to the '
          "requestPolicy"]),
        ({"default": "1Gi", "validRange": {"min": "1Gi", "max": "4Gi", "step": "1Gi"}}, []),
        ({"default": "1Gi", "validRange": {}},
         ["validRange.min: Required value: required when validRange is defined"]),
        ({"default": "1Gi", "validRange": {"min": "2Gi", "max": "9Gi"}},
         ['validRange.min: Invalid value: "1Gi": default is less than min: 2Gi',
          'validRange.max: Invalid value: "9Gi": max is larger than capacity value: 8Gi']),
        ({"default": "3Gi", "validRange": {"min": "2Gi", "step": "2Gi"}},
         ['validRange.step: Invalid value: "3Gi": value is not a multiple of a given step (2Gi) '
          "from (2Gi)"]),
    ],
)  # fmt: skip
def test_a_policy_of_a_capacity_is_checked_in_upstreams_words(
    fields: Any, faults: list[str]
) -> None:
    path = "capacity[memory].requestPolicy."
    assert [f.removeprefix(path) for f in faults_of_device(**policy(**fields))] == faults


@pytest.mark.parametrize("field", ["driver", "nodeName"])
def test_driver_and_node_of_a_slice_stay(field: str) -> None:
    old = sample(SLICES).with_metadata(resource_version="1")
    attribute = {"driver": "driver", "nodeName": "node_name"}[field]
    new = old.with_spec(old.spec.replace(**{attribute: "other.example.com"}))
    assert [fault.split(":")[0] for fault in validate_changed(new, old)] == [f"spec.{field}"]


def test_values_whose_gates_are_off_are_dropped() -> None:
    device = {"name": "a", "attributes": {"a": {"int": 1, "ints": [1]}},
              "nodeAllocatableResourceMappings": {"cpu": {}}}  # fmt: skip
    [stored] = sample(SLICES, spec={"driver": "d", "devices": [device]}).spec.devices
    assert stored.attributes["a"].ints is None
    assert stored.node_allocatable_resource_mappings is None
