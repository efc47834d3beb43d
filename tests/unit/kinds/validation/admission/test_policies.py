"""The cases follow TestValidateValidatingAdmissionPolicy and
TestValidateValidatingAdmissionPolicyBinding of
pkg/apis/admissionregistration/validation/validation_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.samples import BODIES, sample, with_spec
from tests.unit.kinds.validation.outcomes import validate_changed, validate_new_spec

POLICIES = "validatingadmissionpolicies.admissionregistration.k8s.io"
BINDINGS = "validatingadmissionpolicybindings.admissionregistration.k8s.io"
RULE = BODIES[POLICIES]["spec"]["matchConstraints"]["resourceRules"][0]
MATCHING: dict[str, Any] = {"resourceRules": [RULE]}


def rule(**changes: Any) -> dict[str, Any]:
    return {"matchConstraints": {"resourceRules": [{**RULE, **changes}]}}


def validation(expression: str = "true", **fields: Any) -> dict[str, Any]:
    return {"validations": [{"expression": expression, **fields}]}


def condition(name: str = "a", expression: str = "true") -> dict[str, Any]:
    return {"name": name, "expression": expression}


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({}, ""),
        ({"failurePolicy": "other"}, 'spec.failurePolicy: Unsupported value: "other"'),
        ({"validations": []}, "validations or auditAnnotations must contain at least one item"),
        ({"matchConstraints": None}, "spec.matchConstraints: Required value"),
        ({"matchConstraints": {}}, "spec.matchConstraints.resourceRules: Required value"),
        ({"matchConstraints": MATCHING | {"matchPolicy": "other"}}, "matchPolicy: Unsupported"),
        (rule(operations=[]), "resourceRules[0].operations: Required value"),
        (rule(operations=["CREATE", "*"]), "if '*' is present, must not specify other operations"),
        (rule(operations=["create"]), 'operations[0]: Unsupported value: "create"'),
        (rule(apiGroups=[]), "resourceRules[0].apiGroups: Required value"),
        (rule(apiGroups=["a", "*"]), "if '*' is present, must not specify other API groups"),
        (rule(apiVersions=["v1", "*"]), "if '*' is present, must not specify other API versions"),
        (rule(apiVersions=[""]), "apiVersions[0]: Required value"),
        (rule(resources=[]), "resourceRules[0].resources: Required value"),
        (rule(resources=["a", ""]), "resources[1]: Required value"),
        (rule(resources=["*/*", "a"]), "if '*/*' is present, must not specify other resources"),
        (rule(resources=["*", "a"]), "if '*' is present, must not specify other resources without"),
        (rule(resources=["*", "a/b"]), ""),
        (rule(resources=["a/*", "a/x"]), "if 'a/*' is present, must not specify a/x"),
        (rule(resources=["*/a", "x/a"]), "if '*/a' is present, must not specify x/a"),
        (rule(scope="other"), "resourceRules[0].scope: Unsupported value"),
        (rule(resourceNames=["a", "a"]), 'resourceNames[1]: Duplicate value: "a"'),
        (rule(resourceNames=["a/b"]), "resourceNames[0]: Invalid value"),
        ({"paramKind": {"kind": "A"}}, "spec.paramKind.apiVersion: Required value"),
        ({"paramKind": {"apiVersion": "v1"}}, "spec.paramKind.kind: Required value"),
        ({"paramKind": {"apiVersion": "a/b/c", "kind": "A"}}, "unexpected GroupVersion string"),
        ({"paramKind": {"apiVersion": "v1", "kind": "0b"}}, "may have mixed case, but should"),
        (validation("  "), "validations[0].expression: Required value: expression is not"),
        (validation("object.x in [1, 2"), "compilation failed: ERROR: <input>:1:18: Syntax error"),
        (validation("nothing > 1"), "undeclared reference to 'nothing'"),
        (validation("object.x"), 'validations[0].expression: Invalid value: "object.x": must eva'),
        (validation("variables.x == 1"), "undefined field 'x'"),
        (validation("params.x == 1"), "undeclared reference to 'params"),
        (validation("true\n&& true"), "message must be specified if expression contains line"),
        (validation(message="a\nb"), "message must not contain line breaks"),
        (validation(message="  "), "message must be non-empty if specified"),
        (validation(reason="other"), "validations[0].reason: Unsupported value"),
        (validation(messageExpression="1"), 'messageExpression: Invalid value: "1": must evaluate'),
        (validation(messageExpression="authorizer == null ? '' : ''"), "reference to 'authorizer'"),
        ({"matchConditions": [condition("a"), condition("a")]}, "matchConditions[1].name: Dupl"),
        ({"matchConditions": [condition("")]}, "matchConditions[0].name: Required value"),
        ({"matchConditions": [condition("a", "")]}, "matchConditions[0].expression: Required"),
        ({"matchConditions": [condition("a", "1")]}, "must evaluate to bool"),
        ({"matchConditions": [condition(f"a{n}") for n in range(65)]}, "Too many: 65: must have"),
        ({"variables": [condition("a", "1")]}, ""),
        ({"variables": [condition("a b", "1")]}, "name is not a valid CEL identifier"),
        (
            {
                "variables": [
                    condition("a-b", "1"),
                    condition("c", "1"),
                    condition("d", "variables.c"),
                ]
            },
            "name is not a valid CEL identifier",
        ),
        ({"variables": [condition("in", "1")]}, "name is not a valid CEL identifier"),
        ({"variables": [condition("a", "1"), condition("a", "2")]}, "variables[1].name: Duplicate"),
        ({"variables": [condition("a", "(")]}, "variables[0].expression: Invalid value"),
        ({"variables": [condition("a", "variables.b"), condition("b")]}, "undefined field 'b'"),
        ({"variables": [condition("b"), condition("a", "variables.b")]}, ""),
        ({"variables": [condition("a", "object.x > 1")], **validation("variables.a")}, ""),
        (
            {
                "variables": [condition("a", "object.x > 1"), condition("b", "!variables.a")],
                **validation("variables.b"),
            },
            "",
        ),
        (
            {"variables": [condition("a", "1 + 1")], **validation("variables.a")},
            "must evaluate to bool",
        ),
        (
            {"variables": [condition("a", "'x'")], **validation("variables.a > 1")},
            "no matching overload",
        ),
        (
            {"variables": [condition("a", "object.x")], **validation("variables.a")},
            "must evaluate to bool",
        ),
        ({"variables": [condition("a", "[1, 2]")], **validation("variables.a[0] == 1")}, ""),
        ({"auditAnnotations": [{"key": "a", "valueExpression": "null"}]}, ""),
        ({"auditAnnotations": [{"key": "a b", "valueExpression": "''"}]}, "[0].key: Invalid value"),
        (
            {"auditAnnotations": [{"key": "a", "valueExpression": "true"}]},
            "must evaluate to one of [string null_type]",
        ),
        ({"auditAnnotations": [{"key": "a"}]}, "valueExpression is not specified"),
        (
            {"auditAnnotations": [{"key": "a", "valueExpression": f"'{'a' * 5120}'"}]},
            "valueExpression: Too long",
        ),
        (
            {"auditAnnotations": [{"key": f"a{n}", "valueExpression": "''"} for n in range(21)]},
            "spec.auditAnnotations: Too many: 21",
        ),
    ],
)
def test_a_policy_is_sound(spec: dict[str, Any], fault: str) -> None:
    found = validate_new_spec(POLICIES, **spec)
    assert bool(found) == bool(fault), found
    assert any(fault in text for text in found) or not fault, found


def test_expressions_that_stay_are_not_compiled_again() -> None:
    old = sample(POLICIES, spec=BODIES[POLICIES]["spec"] | validation("gone > 1"))
    old = old.with_metadata(resource_version="1", generation=1)
    new = old.with_metadata(labels={"a": "b"})
    assert validate_changed(new, old) == []
    changed = new.with_spec(new.spec.replace(failure_policy="Ignore"))
    assert validate_changed(changed, old) == []
    with_params = sample(
        POLICIES,
        spec=BODIES[POLICIES]["spec"]
        | validation("gone > 1")
        | {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}},
    ).with_metadata(resource_version="1", generation=1)
    assert validate_changed(with_params, old) != []


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({}, ""),
        ({"policyName": ""}, "spec.policyName: Required value"),
        ({"policyName": "A b"}, "spec.policyName: Invalid value"),
        ({"validationActions": []}, "spec.validationActions: Required value"),
        ({"validationActions": ["Refuse"]}, 'validationActions[0]: Unsupported value: "Refuse"'),
        ({"validationActions": ["Audit", "Audit"]}, "validationActions[1]: Duplicate value"),
        ({"validationActions": ["Deny", "Warn"]}, "must not contain both Deny and Warn"),
        ({"paramRef": {"name": "a", "parameterNotFoundAction": "Allow"}}, ""),
        ({"paramRef": {"parameterNotFoundAction": "Deny"}}, "one of name or selector must be"),
        ({"paramRef": {"name": "a"}}, "paramRef.parameterNotFoundAction: Required value"),
        (
            {"paramRef": {"name": "a", "parameterNotFoundAction": "Wait"}},
            "parameterNotFoundAction: Unsupported value",
        ),
        (
            {"paramRef": {"name": "a", "selector": {}, "parameterNotFoundAction": "Deny"}},
            "name and selector are mutually exclusive",
        ),
        ({"matchResources": {"resourceRules": [{**RULE, "operations": []}]}}, "operations: Req"),
        ({"matchResources": {}}, ""),
    ],
)
def test_a_binding_is_sound(spec: dict[str, Any], fault: str) -> None:
    found = validate_new_spec(BINDINGS, **spec)
    assert bool(found) == bool(fault), found
    assert all(fault in text for text in found), found


def test_defaults_are_upstreams() -> None:
    policy = sample(POLICIES)
    constraints = policy.spec.match_constraints
    assert (policy.spec.failure_policy, constraints.match_policy) == ("Fail", "Equivalent")
    assert constraints.resource_rules[0].scope == "*"
    assert constraints.object_selector is not None
    binding = sample(BINDINGS, spec=BODIES[BINDINGS]["spec"] | {"matchResources": {}})
    assert binding.spec.match_resources.match_policy == "Equivalent"


def test_a_binding_is_validated_when_it_changes() -> None:
    good = sample(BINDINGS)
    assert validate_changed(good, good) == []
    bad = with_spec(BINDINGS, policyName="")
    assert validate_changed(bad, good) == validate_new_spec(BINDINGS, policyName="") != []
