"""What one policy decides about one request with one parameter.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/validator.go and
plugin/webhook/matchconditions/matcher.go, Kubernetes 1.33.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kcm.api.admissionregistration_v1 import (
    FAIL,
    AuditAnnotation,
    MutatingAdmissionPolicySpec,
    ValidatingAdmissionPolicySpec,
    Validation,
)
from kcm.apiextensions.cel.policies import PolicyEvaluation
from kcm.apiserver.admission.policies.index import Validating

_LONGEST_MESSAGE = 5 * 1024  # bytes of the value of a messageExpression
_INVALID = "Invalid"
NO_ERROR, COMPILE_ERROR, OUT_OF_BUDGET, OTHER_ERROR = (
    "no_error", "compile_error", "out_of_budget", "invalid_error",
)  # fmt: skip


@dataclass(frozen=True)
class PolicyDecision:
    """What follows from one validation: whether the request is admitted, or why it is not."""

    admitted: bool
    message: str = ""
    reason: str = _INVALID
    seconds: float = 0.0
    error_type: str = NO_ERROR  # other than NO_ERROR if an expression could not be evaluated


_HOLDS = PolicyDecision(admitted=True)  # the time of a validation that holds is not counted


@dataclass(slots=True)
class PolicyResult:
    """The decisions of a policy, and its annotations of the audit log by their keys."""

    decisions: list[PolicyDecision] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)

    @property
    def is_silent(self) -> bool:
        """Whether all validations hold and nothing is annotated."""
        return not self.annotations and self.decisions.count(_HOLDS) == len(self.decisions)


class PolicyDecider:
    """Evaluates one policy on one request."""

    def __init__(self, prepared: Validating, evaluation: PolicyEvaluation) -> None:
        self._spec = prepared.policy.spec
        self._evaluation = evaluation
        self._fails = (self._spec.failure_policy or FAIL) == FAIL

    def decide(self) -> PolicyResult:
        """Returns the decisions and annotations, none if the match conditions do not hold."""
        matches, errors = match_conditions(self._spec, self._evaluation)
        if errors:
            return PolicyResult([self._after_error("; ".join(errors), 0.0)])
        if not matches:
            return PolicyResult()
        result = PolicyResult()
        for validation in self._spec.validations or ():
            result.decisions.append(self._validate(validation))
        for annotation in self._spec.audit_annotations or ():
            self._annotate(annotation, result)
        return result

    def _after_error(self, message: str, seconds: float) -> PolicyDecision:
        """Returns the decision that the failure policy makes of an error."""
        if self._evaluation.exhausted:
            kind = OUT_OF_BUDGET
        else:
            kind = COMPILE_ERROR if message.startswith("compilation error") else OTHER_ERROR
        return PolicyDecision(not self._fails, message, seconds=seconds, error_type=kind)

    def _validate(self, validation: Validation) -> PolicyDecision:
        started = time.perf_counter()
        evaluated = self._evaluation.evaluate(validation.expression)
        if evaluated.error:
            return self._after_error(evaluated.error, time.perf_counter() - started)
        if evaluated.value is True:
            return _HOLDS
        message = self._computed_message(validation)
        if self._evaluation.exhausted:
            why = f"failed messageExpression: {message}"
            return self._after_error(why, time.perf_counter() - started)
        message = message or (validation.message or "").strip()
        message = message or f"failed expression: {validation.expression.strip()}"
        return PolicyDecision(
            admitted=False,
            message=message,
            reason=validation.reason or _INVALID,
            seconds=time.perf_counter() - started,
        )

    def _computed_message(self, validation: Validation) -> str:
        """Returns the value of the messageExpression, "" if it is no sound message."""
        if not validation.message_expression:
            return ""
        evaluated = self._evaluation.evaluate(validation.message_expression)
        if self._evaluation.exhausted:
            return evaluated.error
        text = evaluated.value.strip() if isinstance(evaluated.value, str) else ""
        sound = "\n" not in text and len(text.encode(errors="replace")) <= _LONGEST_MESSAGE
        return text if sound else ""

    def _annotate(self, annotation: AuditAnnotation, result: PolicyResult) -> None:
        evaluated = self._evaluation.evaluate(annotation.value_expression)
        if evaluated.error:
            decision = self._after_error(evaluated.error, 0.0)
            if not decision.admitted:
                result.decisions.append(decision)
        elif isinstance(evaluated.value, str) and evaluated.value.strip():
            result.annotations[annotation.key] = evaluated.value.strip()
        elif evaluated.value is not None and not isinstance(evaluated.value, str):
            why = (
                f"valueExpression '{annotation.value_expression}' resulted in unsupported return "
                "type. Return type must be either string or null."
            )
            result.decisions.append(PolicyDecision(admitted=False, message=why))


def match_conditions(
    spec: ValidatingAdmissionPolicySpec | MutatingAdmissionPolicySpec, evaluation: PolicyEvaluation
) -> tuple[bool, Sequence[str]]:
    """Reports whether all match conditions of a policy hold, or why that is not known, unless its
    failure policy is Ignore.

    A condition that is false decides, even if others cannot be evaluated.
    """
    errors: list[str] = []
    for condition in spec.match_conditions or ():
        evaluated = evaluation.evaluate(condition.expression)
        if evaluated.error:
            errors.append(evaluated.error)
        elif evaluated.value is not True:
            return False, ()
    return not errors, errors if (spec.failure_policy or FAIL) == FAIL else ()


def denials(decisions: Sequence[PolicyDecision]) -> Iterator[tuple[int, PolicyDecision]]:
    """Yields the decisions that do not admit the request, with their numbers."""
    for number, decision in enumerate(decisions):
        if not decision.admitted:
            yield number, decision
