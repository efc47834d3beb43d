"""Whether an ended container is started again: by its rules, its own policy, or the pod's.

Source: ContainerShouldRestart, FindMatchingContainerRestartRule and AllContainersCouldRestart in
pkg/api/v1/pod/util.go, Kubernetes 1.36.
"""

from __future__ import annotations

from kcm.api.core_v1 import Container, PodSpec
from kcm.api.core_v1.containers import ContainerRestartRule

ALWAYS, ON_FAILURE, NEVER = "Always", "OnFailure", "Never"
RESTART_ALL = "RestartAllContainers"


def restarts_after(container: Container, spec: PodSpec, exit_code: int) -> bool:
    """Reports whether a container of a pod with this spec restarts after an exit code."""
    if _find_rule(container, exit_code) is not None:
        return True  # every action starts the container again
    match container.restart_policy or spec.restart_policy:
        case "Never":
            return False
        case "OnFailure":
            return exit_code != 0
    return True


def restarts_all_after(container: Container, exit_code: int) -> bool:
    """Reports whether all containers of the pod restart after an exit code of this one."""
    rule = _find_rule(container, exit_code)
    return rule is not None and rule.action == RESTART_ALL


def _find_rule(container: Container, exit_code: int) -> ContainerRestartRule | None:
    """Returns the first rule for an exit code. Without a policy of its own a container has none."""
    if container.restart_policy is None:
        return None
    rules = container.restart_policy_rules or ()
    return next((rule for rule in rules if _fits(rule, exit_code)), None)


def _fits(rule: ContainerRestartRule, exit_code: int) -> bool:
    codes = rule.exit_codes
    if codes is None:
        return False
    return (exit_code in (codes.values or ())) == (codes.operator == "In")


def may_restart_all(spec: PodSpec) -> bool:
    """Reports whether a rule of any container restarts all of them, ended ones too."""
    return any(
        rule.action == RESTART_ALL
        for container in (*spec.containers, *(spec.init_containers or ()))
        for rule in container.restart_policy_rules or ()
    )
