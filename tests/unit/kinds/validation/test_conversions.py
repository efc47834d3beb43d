"""How custom objects are converted: upstream's TestValidateCustomResourceDefinition and
TestValidateCustomResourceDefinitionUpdate.
"""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kcm.api.apiextensions_v1 import CustomResourceConversion, CustomResourceDefinition
from kcm.kinds.validation.conversions import check

CLIENT = "spec.conversion.webhookClientConfig"
VERSIONS = "spec.conversion.conversionReviewVersions"
URL = {"url": "https://example.com/webhook"}
UNSET = "should not be set when strategy is not set to Webhook"
KNOWN = "must include at least one of v1, v1beta1"


def service(**fields: Any) -> dict[str, Any]:
    return {"service": {"name": "n", "namespace": "ns", "port": 443, **fields}}


def webhook(config: Any = URL, versions: Any = ("v1beta1",), **fields: Any) -> dict[str, Any]:
    return {"strategy": "Webhook", "webhook": {
        "clientConfig": config, "conversionReviewVersions": list(versions), **fields,
    }}  # fmt: skip


def faults(conversion: Any, old: CustomResourceDefinition | None = None) -> list[str]:
    return [str(fault) for fault in check(CustomResourceConversion.model_validate(conversion), old)]


@pytest.mark.parametrize(
    ("conversion", "expected"),
    [
        (webhook(), []),
        (webhook(versions=["v1"]), []),
        (webhook(service()), []),
        (webhook(versions=["invalid-version", "v1beta1"]), []),
        ({"strategy": "None"}, []),
        ({"strategy": ""}, ["spec.conversion.strategy: Required value"]),
        (
            {"strategy": "non_existing_conversion"},
            ['spec.conversion.strategy: Unsupported value: "non_existing_conversion": supported '
             'values: "None", "Webhook"'],
        ),
        (
            {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}},
            [f"{CLIENT}: Required value: required when strategy is set to Webhook"],
        ),
        (
            {"strategy": "Webhook"},
            [f"{CLIENT}: Required value: required when strategy is set to Webhook",
             f"{VERSIONS}: Required value"],
        ),
        (
            webhook({**URL, **service()}),
            [f"{CLIENT}: Required value: exactly one of url or service is required"],
        ),
        (
            webhook({}),
            [f"{CLIENT}: Required value: exactly one of url or service is required"],
        ),
        (
            webhook(service(port=65536)),
            [f"{CLIENT}.service.port: Invalid value: 65536: port is not valid: must be between 1 "
             "and 65535, inclusive"],
        ),
        (
            {"strategy": "None", "webhook": {"clientConfig": URL}},
            [f"{CLIENT}: Forbidden: {UNSET}"],
        ),
        (
            {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1beta1"]}},
            [f"{VERSIONS}: Forbidden: {UNSET}"],
        ),
        (
            webhook(versions=["invalid-version"]),
            [f'{VERSIONS}: Invalid value: []string{{"invalid-version"}}: {KNOWN}'],
        ),
        (
            webhook(versions=["v1beta1", "v1beta1"]),
            [f'{VERSIONS}[1]: Invalid value: "v1beta1": duplicate version'],
        ),
    ],
)  # fmt: skip
def test_how_objects_are_converted_is_checked(conversion: Any, expected: list[str]) -> None:
    assert faults(conversion) == expected


def test_versions_of_reviews_are_names() -> None:
    first, second = faults(webhook(versions=["0v"]))
    assert first.startswith(f'{VERSIONS}[0]: Invalid value: "0v": a DNS-1035 label must consist')
    assert second == f'{VERSIONS}: Invalid value: []string{{"0v"}}: {KNOWN}'


def test_urls_are_https_and_have_a_host() -> None:
    paths = [fault.partition(": ")[0] for fault in faults(webhook({"url": "http:///a"}))]
    assert paths == [f"{CLIENT}.url"] * 2


def definition(conversion: Any, *, established: bool = True) -> CustomResourceDefinition:
    state = {"type": "Established", "status": "True" if established else "False"}
    return CustomResourceDefinition.model_validate(
        {"spec": {"conversion": conversion}, "status": {"conditions": [state]}}
    )


def test_a_review_version_that_was_unknown_before_may_stay() -> None:
    wrong = webhook(versions=["v3"])
    assert faults(wrong, definition(wrong)) == []
    assert len(faults(wrong, definition(webhook()))) == 1


def test_a_wrong_bundle_is_refused_once_the_kind_is_established() -> None:
    wrong = webhook({**URL, "caBundle": base64.b64encode(b"ab").decode()})
    expected = [
        f"{CLIENT}.caBundle: Invalid value: []byte{{0x61, 0x62}}: unable to load root "
        "certificates: data does not contain any valid RSA or ECDSA certificates"
    ]
    assert faults(wrong) == []
    assert faults(wrong, definition(webhook(), established=False)) == []
    assert faults(wrong, definition(webhook())) == expected
    assert faults(wrong, definition(wrong)) == []
