"""Validation of the configurations of webhooks.

Source: pkg/apis/admissionregistration/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kcm.api.admissionregistration_v1 import (
    EQUIVALENT,
    EXACT,
    FAIL,
    IF_NEEDED,
    IGNORE,
    NEVER,
    NONE,
    NONE_ON_DRY_RUN,
    MutatingWebhook,
    MutatingWebhookConfiguration,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
)
from kcm.apiextensions.cel.policy_programs import WEBHOOKS
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    Faults,
    duplicate,
    invalid,
    invalid_all,
    one_of,
    required,
)
from kcm.kinds.validation import meta
from kcm.kinds.validation.admission import webhook_clients
from kcm.kinds.validation.admission.expressions import BOOL, expression, match_conditions
from kcm.kinds.validation.admission.rules import rule

REVIEW_VERSIONS = ("v1", "v1beta1")
_POLICIES = (FAIL, IGNORE)
_MATCH_POLICIES = (EQUIVALENT, EXACT)
_SIDE_EFFECTS = (NONE, NONE_ON_DRY_RUN)
_ALL_SIDE_EFFECTS = (NONE, NONE_ON_DRY_RUN, "Some", "Unknown")
_REINVOCATION = (IF_NEEDED, NEVER)
_MOST_SECONDS = 30
_LEAST_SEGMENTS = 3
_Configuration = ValidatingWebhookConfiguration | MutatingWebhookConfiguration


def create(configuration: _Configuration) -> Faults:
    faults = meta.metadata(configuration, namespaced=False, name_rule=names.subdomain_faults)
    return faults + _webhooks(configuration.webhooks or (), _Kept())


def update(new: _Configuration, old: _Configuration) -> Faults:
    return meta.metadata_update(new, old) + _webhooks(new.webhooks or (), _Kept.of(old))


@dataclass(frozen=True)
class _Kept:
    """What is not checked again, since the stored configuration has it already."""

    expressions: frozenset[str] = frozenset()
    side_effects: bool = False  # effects of which nothing is said
    names: bool = False  # the same name twice
    versions: bool = False  # none of the review versions that the API server speaks

    @classmethod
    def of(cls, old: _Configuration) -> _Kept:
        webhooks = old.webhooks or ()
        return cls(
            frozenset(
                condition.expression
                for webhook in webhooks
                for condition in webhook.match_conditions or ()
            ),
            any(webhook.side_effects not in _SIDE_EFFECTS for webhook in webhooks),
            len({webhook.name for webhook in webhooks}) < len(webhooks),
            any(_has_no_spoken_version(webhook.admission_review_versions) for webhook in webhooks),
        )


def _has_no_spoken_version(versions: Sequence[str]) -> bool:
    return bool(versions) and not set(versions) & set(REVIEW_VERSIONS)


def _webhooks(webhooks: Sequence[ValidatingWebhook], kept: _Kept) -> Faults:
    def check(text: str, path: str) -> Faults:
        return [] if text in kept.expressions else expression(text, path, WEBHOOKS, (BOOL,))

    faults: Faults = []
    seen: set[str] = set()
    for index, webhook in enumerate(webhooks):
        path = f"webhooks[{index}]"
        faults += _webhook(webhook, path, kept)
        faults += match_conditions(webhook.match_conditions or (), f"{path}.matchConditions", check)
        field = f"{path}.admissionReviewVersions"
        faults += _review_versions(webhook.admission_review_versions, field, kept)
        if webhook.name and webhook.name in seen and not kept.names:
            faults.append(duplicate(f"{path}.name", webhook.name))
        seen.add(webhook.name)
    return faults


def _webhook(webhook: ValidatingWebhook, path: str, kept: _Kept) -> Faults:
    faults = _full_name(webhook.name, f"{path}.name")
    for index, one in enumerate(webhook.rules or ()):
        faults += rule(one, f"{path}.rules[{index}]")
    faults += one_of(f"{path}.failurePolicy", webhook.failure_policy, _POLICIES)
    faults += one_of(f"{path}.matchPolicy", webhook.match_policy, _MATCH_POLICIES)
    if webhook.side_effects is None:
        why = f"must specify one of {', '.join(_SIDE_EFFECTS)}"
        faults.append(required(f"{path}.sideEffects", why))
    else:
        effects = _ALL_SIDE_EFFECTS if kept.side_effects else _SIDE_EFFECTS
        faults += one_of(f"{path}.sideEffects", webhook.side_effects, effects)
    seconds = webhook.timeout_seconds
    if seconds is not None and not 1 <= seconds <= _MOST_SECONDS:
        why = f"the timeout value must be between 1 and {_MOST_SECONDS} seconds"
        faults.append(invalid(f"{path}.timeoutSeconds", seconds, why))
    for field, selector in (
        ("namespaceSelector", webhook.namespace_selector),
        ("objectSelector", webhook.object_selector),
    ):
        if selector is not None:
            faults += meta.label_selector(selector, f"{path}.{field}")
    faults += webhook_clients.client_config(webhook.client_config, f"{path}.clientConfig")
    if isinstance(webhook, MutatingWebhook):
        field = f"{path}.reinvocationPolicy"
        faults += one_of(field, webhook.reinvocation_policy, _REINVOCATION)
    return faults


def _full_name(name: str, path: str) -> Faults:
    if not name:
        return [required(path)]
    if details := names.subdomain_faults(name):
        return invalid_all(path, name, details)
    if len(name.split(".")) < _LEAST_SEGMENTS:
        why = "should be a domain with at least three segments separated by dots"
        return [invalid(path, name, why)]
    return []


def _review_versions(versions: Sequence[str], path: str, kept: _Kept) -> Faults:
    accepted = ", ".join(REVIEW_VERSIONS)
    if not versions:
        return [required(path, f"must specify one of {accepted}")]
    faults: Faults = []
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            faults.append(invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        seen.add(version)
        faults += invalid_all(f"{path}[{index}]", version, names.label_1035_faults(version))
    if not kept.versions and _has_no_spoken_version(versions):
        faults.append(invalid(path, list(versions), f"must include at least one of {accepted}"))
    return faults
