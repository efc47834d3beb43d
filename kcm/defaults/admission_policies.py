"""Defaults of ValidatingAdmissionPolicies and their bindings.

Source: pkg/apis/admissionregistration/v1/defaults.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.admissionregistration_v1 import (
    ALL,
    EQUIVALENT,
    FAIL,
    MatchResources,
    NamedRuleWithOperations,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
)
from kcm.apimachinery.meta_v1 import LabelSelector
from kcm.defaults.defaulting import change_fields, fill_defaults, fill_each


def policy(obj: ValidatingAdmissionPolicy) -> ValidatingAdmissionPolicy:
    spec = fill_defaults(obj.spec, failure_policy=FAIL)
    constraints = spec.match_constraints and _matching(spec.match_constraints)
    return change_fields(obj, spec=change_fields(spec, match_constraints=constraints))


def binding(obj: ValidatingAdmissionPolicyBinding) -> ValidatingAdmissionPolicyBinding:
    resources = obj.spec.match_resources and _matching(obj.spec.match_resources)
    return change_fields(obj, spec=change_fields(obj.spec, match_resources=resources))


def _matching(matching: MatchResources) -> MatchResources:
    filled = fill_defaults(
        matching,
        match_policy=EQUIVALENT,
        namespace_selector=LabelSelector(),
        object_selector=LabelSelector(),
    )
    return change_fields(
        filled,
        resource_rules=fill_each(filled.resource_rules, _rule),
        exclude_resource_rules=fill_each(filled.exclude_resource_rules, _rule),
    )


def _rule(rule: NamedRuleWithOperations) -> NamedRuleWithOperations:
    return fill_defaults(rule, scope=ALL)
