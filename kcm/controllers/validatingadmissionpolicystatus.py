"""Status of ValidatingAdmissionPolicies: says what is likely wrong with the types in expressions.

The expressions of a policy are compiled once for each kind that its rules name, with `object` and
`oldObject` of that kind, and `params` of theirs. What does not fit is a warning in
`status.typeChecking`; the policy holds all the same. At most 10 kinds of a rule are looked at, and
at most `MOST_CHECKS` expressions.

Source: pkg/controller/validatingadmissionpolicystatus/controller.go and Check in
staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/typechecking.go,
Kubernetes 1.33. Departures: `request`, `namespaceObject` and `variables` have no types. A rule for
all groups, versions or resources is left out, as upstream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import Field

from kcm import errors
from kcm.api.admissionregistration_v1 import (
    ALL,
    ExpressionWarning,
    NamedRuleWithOperations,
    ParamKind,
    TypeChecking,
    ValidatingAdmissionPolicy,
)
from kcm.api.scheme import Kinds, Resource
from kcm.apiextensions.cel.type_checking import find_type_error
from kcm.sdk import Controller, Options, Plan, UpdateStatus, View, Watch, own_key

MOST_KINDS = 10  # of one rule
MOST_CHECKS = 2000  # of expressions, each for one kind


class ValidatingAdmissionPolicyStatusOptions(Options):
    """The options of the controller of policies' statuses."""

    concurrent_validating_admission_policy_status_syncs: int = Field(
        default=5,
        ge=1,
        description="The number of ValidatingAdmissionPolicyStatusController workers that are "
        "allowed to sync concurrently",
    )


class ValidatingAdmissionPolicyStatusController(Controller):
    """Writes the status of policies. A key is a policy."""

    name = "validatingadmissionpolicy-status-controller"
    short_name = "validatingadmissionpolicystatus"
    options_type = ValidatingAdmissionPolicyStatusOptions
    options: ValidatingAdmissionPolicyStatusOptions

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(ValidatingAdmissionPolicy, own_key),)

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_validating_admission_policy_status_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        policy = view.lister(ValidatingAdmissionPolicy).find(key)
        if policy is None:
            return Plan()
        generation = policy.metadata.generation or 0
        if generation <= (policy.status.observed_generation or 0):
            return Plan()
        checking = TypeChecking(expression_warnings=check_types(policy, view.scheme) or None)
        status = policy.status.replace(observed_generation=generation, type_checking=checking)
        return Plan().then(UpdateStatus(policy.with_status(status), policy))


def check_types(policy: ValidatingAdmissionPolicy, served: Kinds) -> list[ExpressionWarning]:
    """Returns the warnings about a policy's validations and their messages."""
    kinds = list_kinds(policy, served)
    params = _find_param_kind(policy.spec.param_kind, served)
    warnings: list[ExpressionWarning] = []
    most = MOST_CHECKS // max(len(kinds), 1)
    for number, (field, text) in enumerate(_expressions(policy)):
        if number >= most:
            break
        lines = [
            f"{_describe(kind)}: {error}\n"
            for kind in kinds
            if (error := find_type_error(text, kind, params))
        ]
        if lines:
            warnings.append(ExpressionWarning(field_ref=field, warning="\n".join(lines)))
    return warnings


def _expressions(policy: ValidatingAdmissionPolicy) -> Iterator[tuple[str, str]]:
    for index, validation in enumerate(policy.spec.validations or ()):
        yield f"spec.validations[{index}].expression", validation.expression
        if validation.message_expression:
            path = f"spec.validations[{index}].messageExpression"
            yield path, validation.message_expression


def list_kinds(policy: ValidatingAdmissionPolicy, served: Kinds) -> list[Resource]:
    """Returns the served kinds that the rules of a policy name, sorted by group, version and
    kind.
    """
    constraints = policy.spec.match_constraints
    resources: dict[tuple[str, str, str], Resource] = {}
    for rule in (constraints.resource_rules if constraints else None) or ():
        for kind in _list_kinds(rule, served):
            resources[kind.group, kind.version, kind.kind] = kind
    return [resources[key] for key in sorted(resources)][:MOST_KINDS]


def _list_kinds(rule: NamedRuleWithOperations, served: Kinds) -> list[Resource]:
    groups, versions = _without_all(rule.api_groups), _without_all(rule.api_versions)
    resources = [text for text in rule.resources or () if ALL not in text and "/" not in text]
    wanted = (
        (group, version, plural)
        for group in sorted(groups)
        for version in sorted(versions)
        for plural in sorted(resources)
    )
    kinds: list[Resource] = []
    for place in wanted:
        kind = served.at(*place)
        if kind is not None:
            kinds.append(kind)
        if len(kinds) == MOST_KINDS:
            break
    return kinds


def _without_all(names: Sequence[str] | None) -> Sequence[str]:
    """Returns the names, none if one of them stands for all."""
    return () if any(ALL in name for name in names or ()) else names or ()


def _find_param_kind(kind: ParamKind | None, served: Kinds) -> Resource | None:
    if kind is None:
        return None
    try:
        return served.by_gvk(kind.api_version or "", kind.kind or "")
    except errors.UnknownKind:
        return None


def _describe(kind: Resource) -> str:
    return f"{kind.group}/{kind.version}, Kind={kind.kind}"
