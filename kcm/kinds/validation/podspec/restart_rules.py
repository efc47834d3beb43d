"""Validation of the restart policy of containers, and of its rules by exit code.

Source: validateContainerRestartPolicy in pkg/apis/core/validation/validation.go, Kubernetes 1.36.
"""

from __future__ import annotations

from kcm.api.core_v1 import Container
from kcm.api.core_v1.containers import ContainerRestartRule
from kcm.apimachinery.field_errors import Faults, not_supported, required, too_many

_POLICIES = ("Always", "Never", "OnFailure")
_ACTIONS = ("Restart", "RestartAllContainers")
_OPERATORS = ("In", "NotIn")
_MOST_RULES, _MOST_CODES = 20, 255


def restart_policy(container: Container, path: str) -> Faults:
    policy, rules = container.restart_policy, container.restart_policy_rules or ()
    faults: Faults = []
    if policy is None and rules:
        detail = "must specify restartPolicy when restart rules are used"
        faults.append(required(f"{path}.restartPolicy", detail))
    elif policy is not None and policy not in _POLICIES:
        faults.append(not_supported(f"{path}.restartPolicy", policy, _POLICIES))
    where = f"{path}.restartPolicyRules"
    if len(rules) > _MOST_RULES:
        faults.append(too_many(where, len(rules), _MOST_RULES))
    for index, rule in enumerate(rules):
        faults += _rule(rule, f"{where}[{index}]")
    return faults


def _rule(rule: ContainerRestartRule, path: str) -> Faults:
    faults: Faults = []
    if rule.action not in _ACTIONS:
        faults.append(not_supported(f"{path}.action", rule.action or "", _ACTIONS))
    codes = rule.exit_codes
    if codes is None:
        return [*faults, required(f"{path}.exitCodes", "must be specified")]
    if codes.operator not in _OPERATORS:
        faults.append(not_supported(f"{path}.exitCodes.operator", codes.operator or "", _OPERATORS))
    count = len(codes.values or ())
    if count > _MOST_CODES:
        faults.append(too_many(f"{path}.exitCodes.values", count, _MOST_CODES))
    return faults
