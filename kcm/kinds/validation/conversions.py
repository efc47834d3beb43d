"""Validation of how custom objects are converted between versions.

The paths are upstream's, which name fields of its internal type.

Source: validateCustomResourceConversion in
staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go and
staging/src/k8s.io/apiserver/pkg/util/webhook/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

import base64
import binascii
import ssl
from collections.abc import Sequence

from kcm.api.apiextensions_v1 import (
    CustomResourceConversion,
    CustomResourceDefinition,
    WebhookClientConfig,
    WebhookConversion,
)
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    Faults,
    forbidden,
    invalid,
    invalid_all,
    not_supported,
    required,
)
from kcm.errors import Verbatim
from kcm.kinds.validation.admission import webhook_clients

PATH = "spec.conversion"
_CLIENT = f"{PATH}.webhookClientConfig"
_VERSIONS = f"{PATH}.conversionReviewVersions"
_BUNDLE = f"{_CLIENT}.caBundle"
_STRATEGIES = ("None", "Webhook")
_KNOWN_REVIEWS = ("v1", "v1beta1")
_SHOWN = 64  # bytes of a bundle that an error shows


def check(
    conversion: CustomResourceConversion | None, old: CustomResourceDefinition | None = None
) -> Faults:
    """Checks how objects are converted. `old` is the definition before an update."""
    if conversion is None:
        return []
    faults: Faults = []
    if not conversion.strategy:
        faults.append(required(f"{PATH}.strategy"))
    elif conversion.strategy not in _STRATEGIES:
        faults.append(not_supported(f"{PATH}.strategy", conversion.strategy, _STRATEGIES))
    webhook = conversion.webhook or WebhookConversion()
    if conversion.strategy == "Webhook":
        return faults + _webhook(webhook, old)
    why = "should not be set when strategy is not set to Webhook"
    if webhook.client_config is not None:
        faults.append(forbidden(_CLIENT, why))
    if webhook.conversion_review_versions:
        faults.append(forbidden(_VERSIONS, why))
    return faults


def _webhook(webhook: WebhookConversion, old: CustomResourceDefinition | None) -> Faults:
    config = webhook.client_config
    if config is None:
        faults = [required(_CLIENT, "required when strategy is set to Webhook")]
    else:
        faults = webhook_clients.client_config(config, _CLIENT)
        if config.ca_bundle and not _may_have_invalid_bundle(old):
            faults += _bundle(config.ca_bundle)
    strict = old is None or _names_known_review(_webhook_of(old))
    return faults + _review_versions(webhook.conversion_review_versions or (), strict=strict)


def _review_versions(versions: Sequence[str], *, strict: bool) -> Faults:
    """Checks the versions of reviews. `strict` requires one that the API server writes."""
    if not versions:
        return [required(_VERSIONS)]
    faults: Faults = []
    for index, version in enumerate(versions):
        if version in versions[:index]:
            faults.append(invalid(f"{_VERSIONS}[{index}]", version, "duplicate version"))
            continue
        faults += invalid_all(f"{_VERSIONS}[{index}]", version, names.label_1035_faults(version))
    if strict and not any(version in _KNOWN_REVIEWS for version in versions):
        why = f"must include at least one of {', '.join(_KNOWN_REVIEWS)}"
        faults.append(invalid(_VERSIONS, list(versions), why))
    return faults


def _names_known_review(webhook: WebhookConversion) -> bool:
    versions = webhook.conversion_review_versions or ()
    return not versions or any(version in _KNOWN_REVIEWS for version in versions)


def _webhook_of(definition: CustomResourceDefinition) -> WebhookConversion:
    conversion = definition.spec.conversion
    return (conversion and conversion.webhook) or WebhookConversion()


def _may_have_invalid_bundle(old: CustomResourceDefinition | None) -> bool:
    """Whether a wrong bundle is let pass: before the kind is established, and where the old bundle
    was wrong already.
    """
    if old is None or not _is_established(old):
        return True
    config = _webhook_of(old).client_config or WebhookClientConfig()
    return bool(config.ca_bundle and _bundle(config.ca_bundle))


def _is_established(definition: CustomResourceDefinition) -> bool:
    return any(
        condition.type == "Established" and condition.status == "True"
        for condition in definition.status.conditions or ()
    )


def _bundle(text: str) -> Faults:
    try:
        pem = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        pem = b""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem.decode("ascii"))
    except (ssl.SSLError, ValueError):
        shown = Verbatim("[]byte{" + ", ".join(f"{byte:#x}" for byte in pem[:_SHOWN]) + "}")
        why = (
            "unable to load root certificates: data does not contain any valid RSA or ECDSA "
            "certificates"
        )
        return [invalid(_BUNDLE, shown, why)]
    return []
