"""Node affinity, pod affinity and topology spread constraints."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.kinds.validation.podspec.faults import of_spec

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NODES = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
PODS = f"spec.affinity.podAffinity.{REQUIRED}"
LABEL = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value', "
    " or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
APP = {"matchLabels": {"app": "web"}}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}


def of_nodes(**term: Any) -> list[str]:
    """Returns the faults of a required node selector term."""
    return of_spec(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}})


def of_pods(**term: Any) -> list[str]:
    """Returns the faults of a required pod affinity term."""
    return of_spec(affinity={"podAffinity": {REQUIRED: [{"topologyKey": "zone"} | term]}})


@pytest.mark.parametrize(
    ("requirement", "faults"),
    [
        ({"operator": "In", "values": ["v"]}, []),
        ({"operator": "Exists"}, []),
        ({"operator": "Gt", "values": ["1"]}, []),
        ({"operator": "Inn", "values": ["v"]},
         ['.operator: Invalid value: "Inn": not a valid selector operator']),
        ({"operator": "In"},
         [".values: Required value: must be specified when `operator` is 'In' or 'NotIn'"]),
        ({"operator": "Exists", "values": ["v"]},
         [".values: Forbidden: may not be specified when `operator` is 'Exists' or "
          "'DoesNotExist'"]),
        ({"operator": "Gt", "values": ["1", "2"]},
         [".values: Required value: must be specified single value when `operator` is 'Lt' or "
          "'Gt'"]),
        ({"operator": "In", "values": ["-a"]}, [f'.values[0]: Invalid value: "-a": {LABEL}']),
    ],
)  # fmt: skip
def test_requirements_of_nodes(requirement: dict[str, Any], faults: list[str]) -> None:
    """After upstream's TestValidatePod (node affinity) and ValidateNodeSelectorRequirement."""
    messages = of_nodes(matchExpressions=[{"key": "k"} | requirement])
    assert messages == [f"{NODES}[0].matchExpressions[0]{fault}" for fault in faults]


@pytest.mark.parametrize(
    ("requirement", "faults"),
    [
        ({"key": "metadata.name", "operator": "In", "values": ["n1"]}, []),
        ({"key": "metadata.name", "operator": "Exists"},
         ['.operator: Invalid value: "Exists": not a valid selector operator']),
        ({"key": "metadata.name", "operator": "In", "values": ["a", "b"]},
         [".values: Required value: must be only one value when `operator` is 'In' or 'NotIn' "
          "for node field selector"]),
        ({"key": "metadata.namespace", "operator": "In", "values": ["a"]},
         ['.key: Invalid value: "metadata.namespace": not a valid field selector key']),
    ],
)  # fmt: skip
def test_requirements_of_fields(requirement: dict[str, Any], faults: list[str]) -> None:
    """After upstream's TestValidatePod (node field selectors)."""
    messages = of_nodes(matchFields=[requirement])
    assert messages == [f"{NODES}[0].matchFields[0]{fault}" for fault in faults]


def test_a_node_selector_has_terms() -> None:
    assert of_spec(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}) == [
        f"{NODES}: Required value: must have at least one node selector term"
    ]


@pytest.mark.parametrize("weight", [0, 101, 1000, -1])
@pytest.mark.parametrize(
    ("side", "wish"),
    [
        ("nodeAffinity", {"preference": {"matchExpressions": []}}),
        ("podAffinity", {"podAffinityTerm": {"topologyKey": "zone"}}),
        ("podAntiAffinity", {"podAffinityTerm": {"topologyKey": "zone"}}),
    ],
)
def test_weights_are_from_1_to_100(side: str, wish: dict[str, Any], weight: int) -> None:
    messages = of_spec(affinity={side: {PREFERRED: [{"weight": weight} | wish]}})
    where = f"spec.affinity.{side}.{PREFERRED}[0].weight"
    assert messages == [f"{where}: Invalid value: {weight}: must be in the range 1-100"]


def test_values_of_wishes_may_be_what_no_label_can_be() -> None:
    expression = {"key": "k", "operator": "In", "values": ["-"]}
    wish = {"weight": 1, "preference": {"matchExpressions": [expression]}}
    assert of_spec(affinity={"nodeAffinity": {PREFERRED: [wish]}}) == []


@pytest.mark.parametrize(
    ("term", "faults"),
    [
        ({"labelSelector": APP}, []),
        ({"labelSelector": APP, "namespaces": ["ns"], "matchLabelKeys": ["k"]}, []),
        ({"labelSelector": APP, "topologyKey": ""},
         [".topologyKey: Required value: can not be empty",
          '.topologyKey: Invalid value: "": name part must be non-empty',
          '.topologyKey: Invalid value: "": name part must consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
          "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
          "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"]),
        ({"labelSelector": {"matchExpressions": [{"key": "k", "operator": "Inn"}]}},
         ['.labelSelector.matchExpressions[0].operator: Invalid value: "Inn": not a valid '
          "selector operator"]),
        ({"labelSelector": {"matchExpressions": [{"key": "k", "operator": "In"}]}},
         [".labelSelector.matchExpressions[0].values: Required value: must be specified when "
          "`operator` is 'In' or 'NotIn'"]),
        ({"namespaceSelector": {"matchLabels": {"k": "-"}}},
         [f'.namespaceSelector.matchLabels: Invalid value: "-": {LABEL}']),
        ({"matchLabelKeys": ["k"]},
         [".matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"]),
        ({"labelSelector": APP, "matchLabelKeys": ["k"], "mismatchLabelKeys": ["k"]},
         ['.matchLabelKeys[0]: Invalid value: "k": exists in both matchLabelKeys and '
          "mismatchLabelKeys"]),
    ],
)  # fmt: skip
def test_terms_about_pods(term: dict[str, Any], faults: list[str]) -> None:
    """After upstream's TestValidatePod (pod affinity) and
    validateMatchLabelKeysAndMismatchLabelKeys."""
    assert of_pods(**term) == [f"{PODS}[0]{fault}" for fault in faults]


@pytest.mark.parametrize(
    ("constraint", "faults"),
    [
        ({}, []),
        ({"minDomains": 3, "nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore"}, []),
        ({"maxSkew": 0}, [".maxSkew: Invalid value: 0: must be greater than zero"]),
        ({"topologyKey": ""}, [".topologyKey: Required value: can not be empty"]),
        ({"whenUnsatisfiable": "Wrong"},
         ['.whenUnsatisfiable: Unsupported value: "Wrong": supported values: "DoNotSchedule", '
          '"ScheduleAnyway"']),
        ({"minDomains": 0}, [".minDomains: Invalid value: 0: must be greater than zero"]),
        ({"minDomains": 1, "whenUnsatisfiable": "ScheduleAnyway"},
         [".minDomains: Invalid value: 1: can only use minDomains if "
          "whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"]),
        ({"nodeAffinityPolicy": "x"},
         ['.nodeAffinityPolicy: Unsupported value: "x": supported values: "Honor", "Ignore"']),
        ({"labelSelector": APP, "matchLabelKeys": ["app"]}, []),
        ({"labelSelector": {**APP, "matchExpressions": [{"key": "app", "operator": "Exists"}]},
          "matchLabelKeys": ["app"]},
         ['[0]: Invalid value: "app": exists in both matchLabelKeys and labelSelector']),
        ({"labelSelector": {"matchExpressions": [{"key": "k", "operator": "In"}]}},
         [".labelSelector.matchExpressions[0].values: Required value: must be specified when "
          "`operator` is 'In' or 'NotIn'"]),
    ],
)  # fmt: skip
def test_spread_constraints(constraint: dict[str, Any], faults: list[str]) -> None:
    """After upstream's TestValidateTopologySpreadConstraints."""
    messages = of_spec(topologySpreadConstraints=[SPREAD | constraint])
    assert messages == [f"spec.topologySpreadConstraints[0]{fault}" for fault in faults]


def test_a_kind_of_spread_constraint_comes_once() -> None:
    """After upstream's TestValidateTopologySpreadConstraints."""
    assert of_spec(topologySpreadConstraints=[SPREAD, SPREAD]) == [
        "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "
        '"{zone, DoNotSchedule}"'
    ]
