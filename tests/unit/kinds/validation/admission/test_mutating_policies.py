"""MutatingAdmissionPolicies and bindings. Upstream's cases are in tests/upstream; here are its
words.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.samples import sample
from tests.unit.kinds.validation.outcomes import (
    validate_changed,
    validate_new_spec,
)

POLICIES = "mutatingadmissionpolicies.admissionregistration.k8s.io"
BINDINGS = "mutatingadmissionpolicybindings.admissionregistration.k8s.io"
APPLY = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}
RULE = {
    "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["DELETE"],
}  # fmt: skip


# TestValidateMutatingAdmissionPolicy (pkg/apis/admissionregistration/validation)
@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        ({}, []),
        ({"mutations": []},
         ["spec.mutations: Required value: mutations must contain at least one item"]),
        ({"reinvocationPolicy": "Often"},
         ['spec.reinvocationPolicy: Unsupported value: "Often": supported values: "IfNeeded", '
          '"Never"']),
        ({"mutations": [{}]}, ["spec.mutations[0].patchType: Required value"]),
        ({"mutations": [{"patchType": "JSONPatch"}]},
         ["spec.mutations[0].jsonPatch: Required value: must be specified when patchType is "
          "JSONPatch"]),
        ({"mutations": [{**APPLY, "jsonPatch": {"expression": "[]"}}]},
         ['spec.mutations[0].jsonPatch: Invalid value: "{jsonPatch}": must not be specified when '
          "patchType is ApplyConfiguration"]),
        ({"mutations": [{**APPLY, "applyConfiguration": {"expression": " "}}]},
         ["spec.mutations[0].applyConfiguration.expression: Required value"]),
        ({"matchConstraints": {"resourceRules": [RULE]}},
         ['spec.matchConstraints.resourceRules.operations: Unsupported value: "DELETE": supported '
          'values: "*", "CONNECT", "CREATE", "UPDATE"']),
        ({"matchConstraints": {"resourceRules": [RULE | {"operations": ["CONNECT"]}]}}, []),
        ({"variables": [{"name": "a", "expression": "1 +"}, {"name": "b"}]},
         ["spec.variables[1].expression: Required value: expression is not specified"]),
    ],
)  # fmt: skip
def test_a_policy_is_checked_in_upstreams_words(spec: Any, faults: list[str]) -> None:
    found = validate_new_spec(POLICIES, **spec)
    assert [fault for fault in found if "compilation failed" not in fault] == faults


def test_the_expression_of_a_mutation_compiles() -> None:
    wrong = {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: }]"}}
    [fault] = validate_new_spec(POLICIES, mutations=[wrong])
    assert fault.startswith("spec.mutations[0].jsonPatch.expression: Invalid value")
    assert "compilation failed" in fault


def test_the_expression_of_a_mutation_uses_variables() -> None:
    expression = '[JSONPatch{op: "add", path: "/x", value: variables.a}]'
    patch = {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
    variables = [{"name": "a", "expression": "object.x > 1"}]
    assert not validate_new_spec(POLICIES, mutations=[patch], variables=variables)
    [fault] = validate_new_spec(POLICIES, mutations=[patch])
    assert "undefined field 'a'" in fault


def test_conditions_that_a_policy_had_before_are_not_compiled_again() -> None:
    conditions = [{"name": "a", "expression": "1 +"}]
    spec = sample(POLICIES).spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    old = sample(POLICIES, spec={**spec, "matchConditions": conditions})
    old = old.with_metadata(resource_version="1")
    assert validate_changed(old, old) == []


def test_a_binding_names_a_policy_and_has_no_actions() -> None:
    assert validate_new_spec(BINDINGS) == []
    assert validate_new_spec(BINDINGS, policyName="") == ["spec.policyName: Required value"]
    matching = {"resourceRules": [RULE]}
    [fault] = validate_new_spec(BINDINGS, matchResources=matching)
    assert fault.startswith("spec.matchResources.resourceRules.operations: Unsupported value")
