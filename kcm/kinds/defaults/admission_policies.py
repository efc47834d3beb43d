"""Defaults of admission policies, their bindings, and configurations of webhooks.

Source: pkg/apis/admissionregistration/v1/defaults.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import TypeVar

from kcm.api.admissionregistration_v1 import (
    ALL,
    EQUIVALENT,
    FAIL,
    NEVER,
    MatchResources,
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    MutatingWebhook,
    MutatingWebhookConfiguration,
    NamedRuleWithOperations,
    RuleWithOperations,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
)
from kcm.apimachinery.meta_v1 import LabelSelector
from kcm.kinds.defaults.defaulting import change_fields, fill_defaults, fill_each

_WEBHOOK_TIMEOUT = 10  # seconds
_HTTPS_PORT = 443


PolicyT = TypeVar("PolicyT", ValidatingAdmissionPolicy, MutatingAdmissionPolicy)
BindingT = TypeVar("BindingT", ValidatingAdmissionPolicyBinding, MutatingAdmissionPolicyBinding)


def policy(obj: PolicyT) -> PolicyT:
    spec = fill_defaults(obj.spec, failure_policy=FAIL)
    constraints = spec.match_constraints and _matching(spec.match_constraints)
    return change_fields(obj, spec=change_fields(spec, match_constraints=constraints))


def binding(obj: BindingT) -> BindingT:
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


RuleT = TypeVar("RuleT", NamedRuleWithOperations, RuleWithOperations)


def _rule(rule: RuleT) -> RuleT:
    return fill_defaults(rule, scope=ALL)


ConfigurationT = TypeVar(
    "ConfigurationT", ValidatingWebhookConfiguration, MutatingWebhookConfiguration
)


def webhooks(obj: ConfigurationT) -> ConfigurationT:
    return change_fields(obj, webhooks=fill_each(obj.webhooks, _webhook))


def _webhook(webhook: ValidatingWebhook) -> ValidatingWebhook:
    filled = fill_defaults(
        webhook,
        failure_policy=FAIL,
        match_policy=EQUIVALENT,
        namespace_selector=LabelSelector(),
        object_selector=LabelSelector(),
        timeout_seconds=_WEBHOOK_TIMEOUT,
    )
    if isinstance(filled, MutatingWebhook):
        filled = fill_defaults(filled, reinvocation_policy=NEVER)
    config = filled.client_config
    if config.service is not None:
        service = fill_defaults(config.service, port=_HTTPS_PORT)
        config = change_fields(config, service=service)
    return change_fields(filled, client_config=config, rules=fill_each(filled.rules, _rule))
