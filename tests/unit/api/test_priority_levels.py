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


def test_the_shares_of_the_levels_are_upstreams() -> None:
    shares = {}
    for level in LEVELS:
        limits = level.spec.limited or level.spec.exempt
        assert limits is not None
        shares[level.name] = limits.nominal_concurrency_shares, limits.lendable_percent
    assert shares == {
        "exempt": (0, 0), "catch-all": (5, 0), "system": (30, 33), "node-high": (40, 25),
        "leader-election": (10, 0), "workload-high": (40, 50), "workload-low": (100, 90),
        "global-default": (20, 50),
    }  # fmt: skip
    queues = {}
    for level in LEVELS:
        response = level.spec.limited.limit_response if level.spec.limited else None
        if response is not None and response.queuing is not None:
            queues[level.name] = response.queuing.queues, response.queuing.hand_size
    assert queues == {
        "system": (64, 6), "node-high": (64, 6), "leader-election": (16, 4),
        "workload-high": (128, 6), "workload-low": (128, 6), "global-default": (128, 6),
    }  # fmt: skip


def test_the_names_are_those_of_a_cluster() -> None:
    by_precedence = sorted(SCHEMAS, key=lambda schema: schema.spec.matching_precedence or 0)
    assert [schema.name for schema in by_precedence] == [
        "exempt", "probes", "system-leader-election", "endpoint-controller",
        "workload-leader-election", "system-node-high", "system-nodes", "kube-controller-manager",
        "kube-scheduler", "kube-system-service-accounts", "service-accounts", "global-default",
        "catch-all",
    ]  # fmt: skip
