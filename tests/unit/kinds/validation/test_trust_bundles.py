"""The cases follow TestValidateClusterTrustBundle of
pkg/apis/certificates/validation/validation_test.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.samples import sample
from tests.signing_requests import build_pem_authority, build_pem_request
from tests.unit.kinds.validation.outcomes import validate_changed, validate_new

BUNDLES = "clustertrustbundles.certificates.k8s.io"
ONE, TWO = build_pem_authority()[0].decode(), build_pem_authority()[0].decode()
NO_AUTHORITY = build_pem_authority(is_authority=False)[0].decode()
NO_CONSTRAINTS = build_pem_authority(is_authority=None)[0].decode()
HEADERS = ONE.replace("CERTIFICATE-----\n", "CERTIFICATE-----\nProc-Type: 4,X\n\n", 1)
RUBBISH = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
ENTRY = 'spec.trustBundle: Invalid value: "<value omitted>": entry'


def bundle(name: str, text: str = ONE, signer: str | None = None) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"trustBundle": text, "signerName": signer}}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (bundle("k8s.io.foo"), ""),
        (bundle("k8s.io.foo", f"{ONE}text between\n{TWO}"), ""),
        (bundle("k8s.io.bar", "garbage"), "at least one trust anchor must be provided"),
        (bundle("k8s.io.bar", ""), "at least one trust anchor must be provided"),
        (bundle("k8s.io.bar", ONE + TWO + ONE), "duplicate trust anchor (indices [0 2])"),
        (bundle("k8s.io.bar", ONE + NO_AUTHORITY), f"{ENTRY} 1 does not have the CA bit set"),
        (bundle("k8s.io.bar", NO_CONSTRAINTS), f"{ENTRY} 0 does not have the CA bit set"),
        (bundle("k8s.io.bar", RUBBISH), f"{ENTRY} 0 does not parse as X.509"),
        (bundle("k8s.io.bar", HEADERS), f"{ENTRY} 0 has PEM block headers"),
        (
            bundle("k8s.io.bar", build_pem_request().decode()),
            f"{ENTRY} 0 has bad block type: CERTIFICATE REQUEST",
        ),
        (bundle("k8s.io:bar:foo"), 'ClusterTrustBundle without signer name must not have ":"'),
        (bundle("k8s.io:foo:bar", signer="k8s.io/foo"), ""),
        (
            bundle("bar:foo:baz", signer="k8s.io/foo"),
            "ClusterTrustBundle for signerName k8s.io/foo must be named with prefix k8s.io:foo:",
        ),
        (bundle("k8s.io:foo:bar*", signer="k8s.io/foo"), "metadata.name: Invalid value"),
        (bundle("k8s.io:foo:bar", "x" * 1024**2 + ONE, "k8s.io/foo"), "Too long"),
    ],
)
def test_a_bundle_has_certificates_of_authorities(changes: dict[str, Any], fault: str) -> None:
    found = validate_new(BUNDLES, **changes)
    assert bool(found) == bool(fault)
    assert all(fault in text for text in found)


def test_a_name_of_a_signer_must_be_one() -> None:
    [fault] = validate_new(BUNDLES, **bundle("foo:bar", signer="foo"))
    assert "spec.signerName: Invalid value" in fault


def test_the_signer_stays_and_a_bad_bundle_may_too() -> None:
    # TestValidateClusterTrustBundleUpdate
    old = sample(BUNDLES, **bundle("k8s.io:foo:bar", signer="k8s.io/foo"))
    new = old.with_metadata(labels={"a": "b"}, resource_version="1")
    old = old.with_metadata(resource_version="1")
    assert validate_changed(new, old) == []
    other = new.with_spec(new.spec.replace(signer_name="k8s.io/bar"))
    assert "spec.signerName" in " ".join(validate_changed(other, old))
    bad_old, bad_new = (obj.with_spec(obj.spec.replace(trust_bundle="x")) for obj in (old, new))
    assert validate_changed(bad_new, bad_old) == []
    assert validate_changed(bad_new, old) != []


def test_a_text_of_many_beginnings_is_read_once() -> None:
    text = "-----BEGIN CERTIFICATE-----\n" * 37_000
    [fault] = validate_new(BUNDLES, **bundle("a", text))
    assert "at least one" in fault
