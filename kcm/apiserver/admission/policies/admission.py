"""Checks writes against the ValidatingAdmissionPolicies that are bound to them.

Policies, bindings, parameters and namespaces are read from the watch caches, so that a check needs
no request to the store. A policy holds some milliseconds after it was written.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go,
Kubernetes 1.33.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kcm.api.admissionregistration_v1 import (
    AUDIT,
    DENY,
    WARN,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
)
from kcm.api.scheme import Resource
from kcm.apiextensions.cel.policies import PolicyEvaluation, TimeLeft
from kcm.apiextensions.cel.policy_programs import POLICIES
from kcm.apiserver.admission.attributes import WriteAttributes
from kcm.apiserver.admission.context import WriteContext
from kcm.apiserver.admission.policies import metrics
from kcm.apiserver.admission.policies.decisions import (
    NO_ERROR,
    OTHER_ERROR,
    PolicyDecider,
    PolicyDecision,
    PolicyResult,
    denials,
)
from kcm.apiserver.admission.policies.groups import PolicyGroup
from kcm.apiserver.admission.policies.index import PreparedBinding, Validating
from kcm.apiserver.admission.policies.metrics import PolicyMetrics
from kcm.apiserver.admission.policies.run import PolicyRun
from kcm.apiserver.auth.authorizer import Caller
from kcm.apiserver.cache.caches import Caches
from kcm.apiserver.http_errors import PolicyDenied
from kcm.apiserver.request import Remarks

_Bound = PreparedBinding[ValidatingAdmissionPolicyBinding]
_LONGEST_ANNOTATION = 10 * 1024  # characters
_FAILURE = "validation.policy.admission.k8s.io/validation_failure"


class PolicyChecks:
    """Checks writes against policies."""

    def __init__(self, caches: Caches, counts: PolicyMetrics) -> None:
        self._caches = caches
        self._counts = counts

    def check(
        self,
        policies: Sequence[Validating],
        write: WriteAttributes,
        caller: Caller,
        remarks: Remarks,
    ) -> None:
        """Raises PolicyDenied if a policy refuses the write.

        Raises StoreUnavailable if what a policy needs is not loaded.
        """
        context = WriteContext(self._caches, write, caller)
        check = _Check(self._caches, self._counts, context, remarks)
        with context.asking():
            for prepared in policies:
                check.run(prepared)
        check.finish()


@dataclass(frozen=True)
class _Denial:
    policy: str
    binding: str  # "" if the policy itself is at fault
    decision: PolicyDecision

    @property
    def message(self) -> str:
        by = f" with binding '{self.binding}'" if self.binding else ""
        return (
            f"ValidatingAdmissionPolicy '{self.policy}'{by} denied request: {self.decision.message}"
        )


class _Check(PolicyRun[ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding]):
    """Checks one write against all policies."""

    def __init__(
        self,
        caches: Caches,
        counts: PolicyMetrics,
        context: WriteContext,
        remarks: Remarks,
    ) -> None:
        super().__init__(caches, context)
        self._counts = counts
        self._remarks = remarks
        self._denials: list[_Denial] = []
        self._held: dict[PolicyGroup, bool] = {}  # whether all policies of a group hold

    def run(self, prepared: Validating) -> None:
        """Evaluates a policy if it matches, for each of its bindings that does."""
        if prepared.group is not None and self._holds(prepared, prepared.group):
            return
        matched = self._match(prepared)
        if matched is None:
            return
        values: dict[str, list[str]] = {}
        left = TimeLeft(self._left)
        for bound, param in self._invocations(prepared):
            evaluation = self._prepare(prepared, matched, param, left)
            result = PolicyDecider(prepared, evaluation).decide()
            if result.is_silent:
                continue
            self._enforce(prepared, bound, result)
            for key, value in result.annotations.items():
                values.setdefault(key, []).append(value[:_LONGEST_ANNOTATION])
        for key, texts in values.items():
            annotation = ", ".join(dict.fromkeys(texts))
            self._remarks.annotations.setdefault(f"{prepared.policy.name}/{key}", annotation)

    def _holds(self, prepared: Validating, group: PolicyGroup) -> bool:
        """Reports whether a policy holds because all policies of its group do."""
        holds = self._held.get(group)
        if holds is None:
            matched = self._match(prepared)
            holds = matched is None or self._hold_together(group, matched)
            self._held[group] = holds
        return holds and group.includes(prepared.policy.name)

    def _hold_together(self, group: PolicyGroup, matched: Resource) -> bool:
        given, activations = self._context.input(matched)
        left = TimeLeft(self._left)
        evaluation = PolicyEvaluation(given, POLICIES, {}, activations=activations, left=left)
        return bool(group.expression) and evaluation.holds(group.expression)

    def finish(self) -> None:
        """Raises PolicyDenied with the first denial, if there is one."""
        if not self._denials:
            return
        first = self._denials[0]
        resource = self._write.resource
        group = f".{resource.group}" if resource.group else ""
        named = f"{resource.plural}{group}"
        raise PolicyDenied.of(named, self._write.name, first.message, first.decision.reason)

    def _deny(self, prepared: Validating, bound: _Bound | None, why: str, reason: str) -> None:
        decision = PolicyDecision(admitted=False, message=why, error_type=OTHER_ERROR)
        if reason:
            decision = replace(decision, reason=reason)
        binding = bound.binding.name if bound is not None else ""
        self._denials.append(_Denial(prepared.policy.name, binding, decision))

    def _enforce(self, prepared: Validating, bound: _Bound, result: PolicyResult) -> None:
        policy, binding = prepared.policy.name, bound.binding.name
        for decision in result.decisions:
            if decision.admitted and decision.error_type != NO_ERROR:
                self._count(policy, binding, decision, metrics.ALLOW)
        actions = bound.binding.spec.validation_actions or ()
        for number, decision in denials(result.decisions):
            if DENY in actions:
                self._denials.append(_Denial(policy, binding, decision))
                self._count(policy, binding, decision, metrics.DENY)
            if WARN in actions:
                self._remarks.warnings.append(
                    f"Validation failed for ValidatingAdmissionPolicy '{policy}' with binding "
                    f"'{binding}': {decision.message}"
                )
                self._count(policy, binding, decision, metrics.WARN)
            if AUDIT in actions:
                shown = {
                    "message": decision.message,
                    "policy": policy,
                    "binding": binding,
                    "expressionIndex": number,
                    "validationActions": list(actions),
                }
                # as upstream, where annotations are not overwritten: the first failure is audited
                self._remarks.annotations.setdefault(_FAILURE, json.dumps([shown]))
                self._count(policy, binding, decision, metrics.AUDIT)

    def _count(self, policy: str, binding: str, decision: PolicyDecision, action: str) -> None:
        self._counts.observe(policy, binding, decision.error_type, action, decision.seconds)
