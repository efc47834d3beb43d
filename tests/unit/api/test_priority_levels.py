"""After staging/src/k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap/default_test.go and
pkg/apis/flowcontrol/internalbootstrap/default-internal_test.go (TestBootstrapConfiguration...).
"""

from __future__ import annotations

import pytest

from kcm.api.flowcontrol_v1 import FlowSchema, PriorityLevelConfiguration
from kcm.api.priority_levels import (
    MANDATORY_LEVELS,
    MANDATORY_SCHEMAS,
    SUGGESTED_LEVELS,
    SUGGESTED_SCHEMAS,
)
from kcm.kinds import defaults, validation

LEVELS = [*MANDATORY_LEVELS.values(), *SUGGESTED_LEVELS]
SCHEMAS = [*MANDATORY_SCHEMAS.values(), *SUGGESTED_SCHEMAS]


@pytest.mark.parametrize("obj", [*LEVELS, *SCHEMAS], ids=lambda obj: f"{obj.kind}-{obj.name}")
def test_each_is_valid_and_defaults_change_nothing(
    obj: FlowSchema | PriorityLevelConfiguration,
) -> None:
    assert defaults.apply(obj) == obj
    assert validation.validate_create(obj) == []


def test_each_schema_names_a_level_that_exists() -> None:
    names = {level.name for level in LEVELS}
    assert {schema.spec.priority_level_configuration.name for schema in SCHEMAS} == names


def test_the_names_are_those_of_a_cluster() -> None:
    by_precedence = sorted(SCHEMAS, key=lambda schema: schema.spec.matching_precedence or 0)
    assert [schema.name for schema in by_precedence] == [
        "exempt", "probes", "system-leader-election", "endpoint-controller",
        "workload-leader-election", "system-node-high", "system-nodes", "kube-controller-manager",
        "kube-scheduler", "kube-system-service-accounts", "service-accounts", "global-default",
        "catch-all",
    ]  # fmt: skip
