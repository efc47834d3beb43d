"""Tests the rules and defaults of FlowSchemas and PriorityLevelConfigurations.

The cases follow pkg/apis/flowcontrol/validation/validation_test.go (TestFlowSchemaValidation,
TestPriorityLevelConfigurationValidation) and v1/defaults_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api import codec
from kcm.api.priority_levels import MANDATORY_LEVELS, MANDATORY_SCHEMAS
from tests.samples import BODIES, sample, with_spec
from tests.unit.kinds.validation.outcomes import (
    validate_changed_status,
    validate_new,
    validate_new_spec,
)

SCHEMAS = "flowschemas.flowcontrol.apiserver.k8s.io"
LEVELS = "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"
RULE = BODIES[SCHEMAS]["spec"]["rules"][0]
RESOURCES, PATHS = RULE["resourceRules"][0], RULE["nonResourceRules"][0]
QUEUING = {"queues": 64, "handSize": 8, "queueLengthLimit": 50}


def with_rule(**changes: Any) -> dict[str, Any]:
    return {"rules": [{**RULE, **changes}]}


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({}, ""),
        ({"matchingPrecedence": 1}, "only the schema named 'exempt' may have"),
        ({"matchingPrecedence": -1}, "must be a positive value"),
        ({"matchingPrecedence": 10001}, "must not be greater than 10000"),
        ({"priorityLevelConfiguration": {"name": ""}}, "must reference a priority level"),
        ({"priorityLevelConfiguration": {"name": "A b"}}, "priorityLevelConfiguration.name: Inv"),
        ({"distinguisherMethod": {"type": "ByMoon"}}, "distinguisherMethod.type: Unsupported"),
        (with_rule(subjects=[]), "subjects must contain at least one value"),
        (with_rule(resourceRules=[], nonResourceRules=[]), "has to be non-empty"),
        (with_rule(subjects=[{"kind": "Robot"}]), "subjects[0].kind: Unsupported value"),
        (with_rule(subjects=[{"kind": "User"}]), "user is required when subject kind is 'User'"),
        (
            with_rule(subjects=[{"kind": "User", "user": {"name": "a"}, "group": {"name": "b"}}]),
            "group is forbidden when subject kind is not 'Group'",
        ),
        (
            with_rule(subjects=[{"kind": "ServiceAccount", "serviceAccount": {"name": "a"}}]),
            "must specify namespace for service account",
        ),
        (
            with_rule(
                subjects=[
                    {"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": "n"}}
                ]
            ),
            "",
        ),
        (with_rule(resourceRules=[RESOURCES | {"verbs": ["feed"]}]), "verbs: Unsupported value"),
        (
            with_rule(resourceRules=[RESOURCES | {"verbs": ["*", "get"]}]),
            "if '*' is present, must not specify other verbs",
        ),
        (
            with_rule(resourceRules=[RESOURCES | {"apiGroups": []}]),
            "must supply at least one api group",
        ),
        (
            with_rule(resourceRules=[RESOURCES | {"namespaces": [], "clusterScope": False}]),
            "must supply at least one namespace",
        ),
        (
            with_rule(resourceRules=[RESOURCES | {"namespaces": ["-bad-"]}]),
            "each member of this list must be '*' or a DNS-1123 label",
        ),
        (with_rule(nonResourceRules=[PATHS | {"nonResourceURLs": ["/"]}]), ""),
        (
            with_rule(nonResourceRules=[PATHS | {"nonResourceURLs": ["/a*b"]}]),
            "wildcard can only do suffix matching",
        ),
        (
            with_rule(nonResourceRules=[PATHS | {"nonResourceURLs": ["a"]}]),
            "must start with slash",
        ),
    ],
)
def test_a_flow_schema_matches_requests(spec: dict[str, Any], fault: str) -> None:
    found = validate_new_spec(SCHEMAS, **spec)
    assert bool(found) == bool(fault)
    assert all(fault in text for text in found)


def limited(**limits: Any) -> dict[str, Any]:
    response = {"type": "Queue", "queuing": QUEUING}
    return {"type": "Limited", "limited": {"limitResponse": response} | limits}


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        (limited(), ""),
        (limited(nominalConcurrencyShares=0), ""),
        (limited(nominalConcurrencyShares=-1), "must be a non-negative integer"),
        (limited(lendablePercent=101), "must be between 0 and 100, inclusive"),
        (limited(borrowingLimitPercent=-1), "if specified, must be a non-negative integer"),
        (limited(limitResponse={"type": "Reject"}), ""),
        (limited(limitResponse={"type": "Wait"}), "limitResponse.type: Unsupported value"),
        (limited(limitResponse={"type": "Queue"}), "queuing: Required value"),
        (limited(limitResponse={"type": "Reject", "queuing": QUEUING}), "queuing: Forbidden"),
        (
            limited(limitResponse={"type": "Queue", "queuing": QUEUING | {"handSize": 65}}),
            "should not be greater than queues (64)",
        ),
        (
            limited(
                limitResponse={"type": "Queue", "queuing": {"queues": 512, "handSize": 8}},
            ),
            "required entropy bits of deckSize 512 and handSize 8 should not be greater than 60",
        ),
        ({"type": "Limited", "limited": None}, "spec.limited: Required value"),
        ({"type": "Strict"}, "spec.type: Unsupported value"),
        ({"type": "Exempt", "limited": None}, "type must be 'Exempt' if and only if name is"),
    ],
)
def test_a_priority_level_has_limits(spec: dict[str, Any], fault: str) -> None:
    found = validate_new_spec(LEVELS, **spec)
    assert bool(found) == bool(fault)
    assert all(fault in text for text in found)


def test_only_exempt_has_no_limits() -> None:
    spec: dict[str, Any] = {"type": "Exempt", "exempt": {}}
    assert validate_new(LEVELS, metadata={"name": "exempt"}, spec=spec) == []
    level = sample(LEVELS, metadata={"name": "exempt"}, spec=spec)
    exempt = level.spec.exempt
    assert (exempt.nominal_concurrency_shares, exempt.lendable_percent) == (0, 0)


def test_defaults_are_upstreams() -> None:
    assert sample(SCHEMAS).spec.matching_precedence == 1000
    level = with_spec(LEVELS, limited={"limitResponse": {"type": "Queue", "queuing": {}}})
    limits = level.spec.limited
    assert (limits.nominal_concurrency_shares, limits.lendable_percent) == (30, 0)
    queuing = limits.limit_response.queuing
    assert (queuing.queues, queuing.hand_size, queuing.queue_length_limit) == (64, 8, 50)


@pytest.mark.parametrize("name", ["exempt", "catch-all"])
def test_mandatory_schemas_are_fixed(name: str) -> None:
    spec = codec.to_dict(MANDATORY_SCHEMAS[name])["spec"]
    assert validate_new(SCHEMAS, metadata={"name": name}, spec=spec) == []
    spec["priorityLevelConfiguration"] = {"name": "other"}
    [fault] = validate_new(SCHEMAS, metadata={"name": name}, spec=spec)
    assert f"spec of '{name}' must equal the fixed value" in fault


def test_mandatory_levels_are_fixed_except_the_shares_of_exempt() -> None:
    spec = codec.to_dict(MANDATORY_LEVELS["catch-all"])["spec"]
    assert validate_new(LEVELS, metadata={"name": "catch-all"}, spec=spec) == []
    spec["limited"]["nominalConcurrencyShares"] = 6
    [fault] = validate_new(LEVELS, metadata={"name": "catch-all"}, spec=spec)
    assert "spec of 'catch-all' must equal the fixed value" in fault
    shares = {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 50}}
    assert validate_new(LEVELS, metadata={"name": "exempt"}, spec=shares) == []


@pytest.mark.parametrize("kind", [SCHEMAS, LEVELS])
@pytest.mark.parametrize(
    ("types", "faults"),
    [
        (None, []),
        (["Dangling", "Other"], []),
        (["Dangling", "Dangling"], ['status.conditions[1].type: Duplicate value: "Dangling"']),
        ([""], ["status.conditions[0].type: Required value: must not be empty"]),
    ],
)
def test_conditions_have_types_of_their_own(
    kind: str, types: list[str] | None, faults: list[str]
) -> None:
    old = sample(kind).with_metadata(resource_version="1", uid="u")
    conditions = None if types is None else [{"type": each, "status": "True"} for each in types]
    status = {} if conditions is None else {"conditions": conditions}
    new = sample(kind, status=status).with_metadata(resource_version="1", uid="u")
    assert validate_changed_status(new, old) == faults
