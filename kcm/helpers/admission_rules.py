"""Whether the rules of policies and webhooks are about requests of a sort.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules/rules.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api.admissionregistration_v1 import ALL, NamedRuleWithOperations, RuleWithOperations

Rule = RuleWithOperations | NamedRuleWithOperations


def names_request(rule: Rule, group: str, plural: str, subresource: str, operation: str) -> bool:
    """Reports whether a rule is about requests for a resource, in whatever version and scope."""
    return (
        has_value(rule.operations, operation)
        and has_value(rule.api_groups, group)
        and any(_names_resource(text, plural, subresource) for text in rule.resources or ())
    )


def has_value(values: Sequence[str] | None, value: str) -> bool:
    """Reports whether the value is one of these, or all values are meant."""
    return value in (values or ()) or ALL in (values or ())


def _names_resource(text: str, plural: str, subresource: str) -> bool:
    resource, _, sub = text.partition("/")
    return resource in (ALL, plural) and sub in (ALL, subresource)
