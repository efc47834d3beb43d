"""Validation of a Job's pod failure policy and success policy.

Source: pkg/apis/batch/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api.batch_v1 import (
    JobSpec,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern,
    PodFailurePolicyRule,
    SuccessPolicyRule,
)
from kcm.apimachinery import completion_indexes, metadata_checks
from kcm.apimachinery.field_errors import (
    Faults,
    duplicate,
    invalid,
    invalid_without_value,
    not_negative,
    not_supported,
    required,
    too_long,
    too_many,
)

_MOST_RULES = 20
_MOST_PATTERNS = 20
_MOST_EXIT_CODES = 255
_INDEXES_LENGTH = 64 * 1024  # bytes
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")


def failure(spec: JobSpec, path: str) -> Faults:
    """Checks the podFailurePolicy of a Job."""
    if spec.pod_failure_policy is None:
        return []
    rules = spec.pod_failure_policy.rules
    template = spec.template.spec
    names = {c.name for c in (*template.containers, *(template.init_containers or ()))}
    faults: Faults = []
    if len(rules) > _MOST_RULES:
        faults.append(too_many(f"{path}.rules", len(rules), _MOST_RULES))
    for index, rule in enumerate(rules):
        faults += _failure_rule(rule, spec, f"{path}.rules[{index}]", names)
    return faults


def _failure_rule(rule: PodFailurePolicyRule, spec: JobSpec, path: str, names: set[str]) -> Faults:
    codes, patterns = rule.on_exit_codes, rule.on_pod_conditions
    faults = _one_of(f"{path}.action", rule.action, _ACTIONS)
    if rule.action == "FailIndex" and spec.backoff_limit_per_index is None:
        detail = "requires the backoffLimitPerIndex to be set"
        faults.append(invalid(f"{path}.action", rule.action, detail))
    if codes is not None:
        faults += _exit_codes(codes, f"{path}.onExitCodes", names)
    if patterns:
        faults += _patterns(patterns, f"{path}.onPodConditions")
    if codes is not None and patterns:
        detail = "specifying both OnExitCodes and OnPodConditions is not supported"
        faults.append(invalid_without_value(path, detail))
    if codes is None and not patterns:
        detail = "specifying one of OnExitCodes and OnPodConditions is required"
        faults.append(invalid_without_value(path, detail))
    return faults


def _one_of(path: str, value: str, supported: Sequence[str]) -> Faults:
    if not value:
        listed = " ".join(f'"{one}"' for one in supported)
        return [required(path, f"valid values: [{listed}]")]
    return [] if value in supported else [not_supported(path, value, supported)]


def _exit_codes(
    requirement: PodFailurePolicyOnExitCodesRequirement, path: str, names: set[str]
) -> Faults:
    values, name = requirement.values, requirement.container_name
    faults = _one_of(f"{path}.operator", requirement.operator, _OPERATORS)
    if name is not None and name not in names:
        detail = "must be one of the container or initContainer names in the pod template"
        faults.append(invalid(f"{path}.containerName", name, detail))
    if not values:
        faults.append(invalid(f"{path}.values", values, "at least one value is required"))
    elif len(values) > _MOST_EXIT_CODES:
        faults.append(too_many(f"{path}.values", len(values), _MOST_EXIT_CODES))
    for index, value in enumerate(values):
        where = f"{path}.values[{index}]"
        if requirement.operator == "In" and value == 0:
            faults.append(invalid(where, value, "must not be 0 for the In operator"))
        if value in values[:index]:
            faults.append(duplicate(where, value))
    if values != sorted(values):
        faults.append(invalid(f"{path}.values", values, "must be ordered"))
    return faults


def _patterns(patterns: Sequence[PodFailurePolicyOnPodConditionsPattern], path: str) -> Faults:
    faults: Faults = []
    if len(patterns) > _MOST_PATTERNS:
        faults.append(too_many(path, len(patterns), _MOST_PATTERNS))
    for index, pattern in enumerate(patterns):
        where = f"{path}[{index}]"
        faults += metadata_checks.label_key(pattern.type, f"{where}.type")
        faults += _one_of(f"{where}.status", pattern.status, _STATUSES)
    return faults


def success(spec: JobSpec, path: str) -> Faults:
    """Checks the successPolicy of a Job."""
    policy = spec.success_policy
    if policy is None:
        return []
    if spec.completion_mode != "Indexed":
        return [invalid(path, policy, "requires indexed completion mode")]
    where = f"{path}.rules"
    faults: Faults = []
    if not policy.rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        faults.append(required(where, detail))
    if len(policy.rules) > _MOST_RULES:
        faults.append(too_many(where, len(policy.rules), _MOST_RULES))
    for index, rule in enumerate(policy.rules):
        faults += _success_rule(rule, spec.completions or 0, f"{where}[{index}]")
    return faults


def _success_rule(rule: SuccessPolicyRule, completions: int, path: str) -> Faults:
    count, named = rule.succeeded_count, rule.succeeded_indexes
    if count is None and named is None:
        detail = "at least one of succeededCount or succeededIndexes must be specified"
        return [required(path, detail)]
    faults: Faults = []
    total = 0
    if named is not None:
        where = f"{path}.succeededIndexes"
        if len(named) > _INDEXES_LENGTH:
            faults.append(too_long(where, _INDEXES_LENGTH))
        try:
            total = len(completion_indexes.parse_strictly(named, completions))
        except ValueError as error:
            faults.append(invalid(where, named, f"error parsing succeededIndexes: {error}"))
    if count is None:
        return faults
    where = f"{path}.succeededCount"
    faults += not_negative(where, count)
    bounds = [(completions, "the number of specified completions")]
    if named is not None:
        bounds.append((total, "the number of indexes in the specified succeededIndexes field"))
    for bound, what in bounds:
        if count > bound:
            faults.append(invalid(where, count, f"must be less than or equal to {bound} ({what})"))
    return faults
