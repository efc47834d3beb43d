"""Evaluates a Job's podFailurePolicy for a failed pod, and its successPolicy.

Source: pkg/controller/job/{pod_failure_policy,success_policy}.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kcm.api.batch_v1 import (
    Job,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern,
    PodFailurePolicyRule,
    SuccessPolicyRule,
)
from kcm.api.core_v1 import ContainerStatus, Pod, PodCondition
from kcm.apimachinery.completion_indexes import Indexes


@dataclass(frozen=True)
class FailureVerdict:
    """The effect of a pod's failure on its Job, by the Job's podFailurePolicy."""

    action: str = ""  # the action of the rule that matched, "" if none did
    message: str = ""  # why the Job fails, "" if it does not

    @property
    def counts(self) -> bool:
        return self.action != "Ignore"


_NO_RULE = FailureVerdict()


def judge_failure(job: Job, pod: Pod) -> FailureVerdict:
    """Returns the verdict of the first rule of the podFailurePolicy that matches a failed pod."""
    policy = job.spec.pod_failure_policy
    for number, rule in enumerate(policy.rules if policy else ()):
        matched = _match(rule, pod)
        if matched:
            message = f"{matched} matching {rule.action} rule at index {number}"
            return FailureVerdict(rule.action, message if rule.action == "FailJob" else "")
    return _NO_RULE


def _match(rule: PodFailurePolicyRule, pod: Pod) -> str:
    """Returns a text that says how the pod matches the rule, "" if it does not."""
    if rule.on_exit_codes is not None:
        ended = _container(pod, rule.on_exit_codes)
        if ended is None:
            return ""
        code = _exit_code(ended)
        return f"Container {ended.name} for pod {pod.key} failed with exit code {code}"
    condition = _condition(pod, rule.on_pod_conditions or ())
    return "" if condition is None else f"Pod {pod.key} has condition {condition.type}"


def _container(
    pod: Pod, requirement: PodFailurePolicyOnExitCodesRequirement
) -> ContainerStatus | None:
    status = pod.status
    ended: list[ContainerStatus] = list(status.container_statuses or ())
    ended += status.init_container_statuses or ()
    for candidates in ended:
        code = _exit_code(candidates)
        if not code or requirement.container_name not in (None, candidates.name):
            continue
        if (code in requirement.values) == (requirement.operator == "In"):
            return candidates
    return None


def _exit_code(status: ContainerStatus) -> int | None:
    ended = status.state.terminated if status.state is not None else None
    return None if ended is None else ended.exit_code


def _condition(
    pod: Pod, patterns: Iterable[PodFailurePolicyOnPodConditionsPattern]
) -> PodCondition | None:
    wanted = {(pattern.type, pattern.status) for pattern in patterns}
    matching = (c for c in pod.status.conditions or () if (c.type, c.status) in wanted)
    return next(matching, None)


def success_message(job: Job, succeeded: Indexes) -> str:
    """Returns a message that names the rule of the successPolicy that is met, "" if none is."""
    policy = job.spec.success_policy
    if policy is None or not succeeded.intervals:
        return ""
    for number, rule in enumerate(policy.rules):
        if _is_met(rule, succeeded, job.spec.completions or 0):
            return f"Matched rules at index {number}"
    return ""


def _is_met(rule: SuccessPolicyRule, succeeded: Indexes, completions: int) -> bool:
    count = rule.succeeded_count
    if rule.succeeded_indexes is None:
        return count is not None and len(succeeded) >= count
    required = Indexes.parse(rule.succeeded_indexes, completions)
    if not required.intervals:
        return False
    succeeded_indexes = required.common(succeeded)
    return succeeded_indexes == len(required) or (count is not None and succeeded_indexes >= count)
