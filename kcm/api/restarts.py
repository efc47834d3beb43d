"""Whether an ended container is started again: by its rules, its own policy, or the pod's.

Source: ContainerShouldRestart and AllContainersCouldRestart in pkg/api/v1/pod/util.go, Kubernetes
1.36.
"""

from __future__ import annotations

from kcm.api.core_v1 import Container, PodSpec
from kcm.api.core_v1.containers import ContainerRestartRule

ALWAYS, ON_FAILURE, NEVER = "Always", "OnFailure", "Never"
RESTART_ALL = "RestartAllContainers"


def restarts_after(container: Container, spec: PodSpec, exit_code: int) -> bool:
    """Reports whether a container of a pod with this spec restarts after an exit code."""
    if container.restart_policy is not None:
        rules = container.restart_policy_rules or ()
        if any(_fits(rule, exit_code) for rule in rules):
            return True  # every action starts the container again
    match container.restart_policy or spec.restart_policy:
        case "Never":
            return False
        case "OnFailure":
            return exit_code != 0
    return True


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
