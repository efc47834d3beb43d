"""The CSR signing controller, after TestHandle and TestSigner of upstream's signer_test.go."""

from __future__ import annotations

import base64
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kcm.api.certificates_v1 import (
    API_SERVER_CLIENT,
    API_SERVER_CLIENT_KUBELET,
    KUBELET_SERVING,
    LEGACY_UNKNOWN,
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
    CertificateSigningRequestStatus,
)
from kcm.controllers.certificates.csrsigning import CSRSigningController, CSRSigningOptions
from kcm.errors import ConfigurationError
from kcm.reconcile.plan import Plan, UpdateStatus
from kcm.testing.views import NOW, FakeView
from tests.signing_requests import build_pem_request, signing_request, write_authority

CLIENT = ["digital signature", "key encipherment", "client auth"]
SERVING = ["digital signature", "key encipherment", "server auth"]
NODE: dict[str, Any] = {"name": "system:node:n1", "organizations": ["system:nodes"]}


@pytest.fixture
def options(tmp_path: Path) -> CSRSigningOptions:
    """Gives the options of a cluster with an authority."""
    certificate, key = write_authority(tmp_path, NOW)
    return CSRSigningOptions(
        cluster_signing_cert_file=str(certificate), cluster_signing_key_file=str(key)
    )


def approve(request: CertificateSigningRequest, *types: str) -> CertificateSigningRequest:
    conditions = [
        CertificateSigningRequestCondition(type=kind, status="True")
        for kind in types or ("Approved",)
    ]
    return request.with_status(CertificateSigningRequestStatus(conditions=conditions))


def reconcile(request: CertificateSigningRequest, options: CSRSigningOptions) -> Plan:
    controller = CSRSigningController(options)
    return controller.reconcile("csr", FakeView(request, controller=controller))


def read_status(plan: Plan) -> CertificateSigningRequestStatus:
    """Returns the status that a plan writes."""
    (write,) = plan.writes
    assert isinstance(write, UpdateStatus)
    assert isinstance(write.new, CertificateSigningRequest)
    return write.new.status


def read_certificate(plan: Plan) -> x509.Certificate:
    """Returns the certificate that a plan issues."""
    certificate = read_status(plan).certificate
    assert certificate
    return x509.load_pem_x509_certificate(base64.b64decode(certificate))


@pytest.mark.parametrize(
    ("signer", "usages", "request_fields", "failure"),
    [
        (API_SERVER_CLIENT, CLIENT, {"name": "alice"}, ""),
        (
            API_SERVER_CLIENT,
            [*CLIENT, "server auth"],
            {},
            "invalid usage for client certificate: server auth",
        ),
        (
            API_SERVER_CLIENT,
            ["digital signature"],
            {},
            "missing required usage for client certificate: client auth",
        ),
        (API_SERVER_CLIENT_KUBELET, CLIENT, NODE, ""),
        (API_SERVER_CLIENT_KUBELET, ["digital signature", "client auth"], NODE, ""),
        (
            API_SERVER_CLIENT_KUBELET,
            CLIENT,
            {"name": "system:node:n1"},
            "subject organization is not system:nodes",
        ),
        (
            API_SERVER_CLIENT_KUBELET,
            CLIENT,
            {"name": "n1", "organizations": ["system:nodes"]},
            "subject common name does not begin with system:node:",
        ),
        (
            API_SERVER_CLIENT_KUBELET,
            CLIENT,
            {**NODE, "hosts": ["n1.example.com"]},
            "DNS subjectAltNames are not allowed",
        ),
        (
            API_SERVER_CLIENT_KUBELET,
            CLIENT,
            {**NODE, "addresses": ["10.0.0.1"]},
            "IP subjectAltNames are not allowed",
        ),
        (
            API_SERVER_CLIENT_KUBELET,
            SERVING,
            NODE,
            "usages did not match [client auth digital signature key encipherment]",
        ),
        (KUBELET_SERVING, SERVING, {**NODE, "addresses": ["10.0.0.1"]}, ""),
        (KUBELET_SERVING, SERVING, NODE, "DNS or IP subjectAltName is required"),
        (
            KUBELET_SERVING,
            SERVING,
            {**NODE, "hosts": ["n1"], "emails": ["a@example.com"]},
            "Email subjectAltNames are not allowed",
        ),
        (
            KUBELET_SERVING,
            SERVING,
            {**NODE, "hosts": ["n1"], "uris": ["http://n1"]},
            "URI subjectAltNames are not allowed",
        ),
        (LEGACY_UNKNOWN, ["any"], {}, ""),
    ],
)
def test_a_signer_issues_what_it_recognizes_and_fails_the_rest(
    options: CSRSigningOptions,
    signer: str,
    usages: list[str],
    request_fields: dict[str, Any],
    failure: str,
) -> None:
    request = approve(signing_request(build_pem_request(**request_fields), usages, signer))
    status = read_status(reconcile(request, options))
    failed = [c for c in status.conditions or () if c.type == "Failed"]
    assert bool(status.certificate) is not bool(failure)
    assert [(c.status, c.reason, c.message) for c in failed] == (
        [("True", "SignerValidationFailure", failure)] if failure else []
    )


@pytest.mark.parametrize("types", [("Denied",), ("Approved", "Failed"), ("Other",)])
def test_only_approved_requests_that_have_not_failed_are_signed(
    options: CSRSigningOptions, types: tuple[str, ...]
) -> None:
    request = approve(signing_request(build_pem_request(), CLIENT, API_SERVER_CLIENT), *types)
    assert reconcile(request, options).writes == []


def test_signers_of_others_and_signers_without_files_are_left_alone(
    options: CSRSigningOptions,
) -> None:
    foreign = approve(signing_request(build_pem_request(), CLIENT, "example.com/signer"))
    assert reconcile(foreign, options).writes == []
    own = approve(signing_request(build_pem_request(), CLIENT, API_SERVER_CLIENT))
    assert reconcile(own, CSRSigningOptions()).writes == []


def test_a_certificate_has_the_subject_the_names_and_the_usages(options: CSRSigningOptions) -> None:
    pem = build_pem_request(
        "system:node:n1", ["system:nodes"], hosts=["n1"], addresses=["10.0.0.1"]
    )
    request = approve(signing_request(pem, SERVING, KUBELET_SERVING))
    made = read_certificate(reconcile(request, options))
    assert made.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "system:node:n1"
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["n1"]
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    usage = made.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.digital_signature, usage.key_encipherment, usage.crl_sign) == (True, True, False)
    extended = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(extended) == [ExtendedKeyUsageOID.SERVER_AUTH]
    authority = Path(options.cluster_signing_cert_file).read_bytes()
    made.verify_directly_issued_by(x509.load_pem_x509_certificate(authority))


# What Windows takes for the user who signs in.
USER_PRINCIPAL = x509.OtherName(x509.ObjectIdentifier("1.3.6.1.4.1.311.20.2.3"), b"\x0c\x04root")


def test_names_of_kinds_that_nobody_checks_are_not_signed(options: CSRSigningOptions) -> None:
    pem = build_pem_request(**NODE, others=[USER_PRINCIPAL])
    made = read_certificate(
        reconcile(approve(signing_request(pem, CLIENT, API_SERVER_CLIENT_KUBELET)), options)
    )
    assert not [e for e in made.extensions if isinstance(e.value, x509.SubjectAlternativeName)]
    pem = build_pem_request(**NODE, hosts=["n1"], others=[USER_PRINCIPAL])
    made = read_certificate(
        reconcile(approve(signing_request(pem, SERVING, KUBELET_SERVING)), options)
    )
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(names) == [x509.DNSName("n1")]


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        (None, timedelta(minutes=-5), timedelta(days=365, minutes=-5)),
        (601, timedelta(minutes=-5), timedelta(seconds=601)),
        (1, timedelta(minutes=-5), timedelta(minutes=10)),
        (10 * 3600, timedelta(minutes=-5), timedelta(hours=10, minutes=-5)),
        (2**31 - 1, timedelta(minutes=-5), timedelta(days=365, minutes=-5)),
    ],
)
def test_the_duration_is_the_one_asked_for_within_limits(
    options: CSRSigningOptions, asked: int | None, start: timedelta, end: timedelta
) -> None:
    request = signing_request(
        build_pem_request(), CLIENT, API_SERVER_CLIENT, expiration_seconds=asked
    )
    made = read_certificate(reconcile(approve(request), options))
    now = NOW.replace(microsecond=0)
    assert made.not_valid_before_utc == now + start
    assert made.not_valid_after_utc == now + end


def test_no_certificate_outlives_its_authority(tmp_path: Path) -> None:
    certificate, key = write_authority(tmp_path, NOW, days=30)
    options = CSRSigningOptions(
        cluster_signing_cert_file=str(certificate), cluster_signing_key_file=str(key)
    )
    request = approve(signing_request(build_pem_request(), CLIENT, API_SERVER_CLIENT))
    made = read_certificate(reconcile(request, options))
    assert made.not_valid_after_utc == NOW.replace(microsecond=0) + timedelta(days=30)


def test_a_signer_may_have_an_authority_of_its_own(
    options: CSRSigningOptions, tmp_path: Path
) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    certificate, key = write_authority(folder, NOW)
    own = options.model_copy(
        update={
            "cluster_signing_kube_apiserver_client_cert_file": str(certificate),
            "cluster_signing_kube_apiserver_client_key_file": str(key),
        }
    )
    request = approve(signing_request(build_pem_request(), CLIENT, API_SERVER_CLIENT))
    made = read_certificate(reconcile(request, own))
    made.verify_directly_issued_by(x509.load_pem_x509_certificate(certificate.read_bytes()))


def test_a_missing_file_and_a_foreign_key_are_named(
    options: CSRSigningOptions, tmp_path: Path
) -> None:
    request = approve(signing_request(build_pem_request(), CLIENT, API_SERVER_CLIENT))
    gone = options.model_copy(update={"cluster_signing_key_file": "/nowhere/ca.key"})
    with pytest.raises(ConfigurationError, match=r"/nowhere/ca\.key: No such file"):
        reconcile(request, gone)
    folder = tmp_path / "other"
    folder.mkdir()
    _, foreign = write_authority(folder, NOW)
    wrong = options.model_copy(update={"cluster_signing_key_file": str(foreign)})
    with pytest.raises(ConfigurationError, match="is not the private key of"):
        reconcile(request, wrong)


def test_an_authority_that_has_expired_signs_nothing(tmp_path: Path) -> None:
    certificate, key = write_authority(tmp_path, NOW - timedelta(days=60), days=30)
    options = CSRSigningOptions(
        cluster_signing_cert_file=str(certificate), cluster_signing_key_file=str(key)
    )
    request = approve(signing_request(build_pem_request(), CLIENT, API_SERVER_CLIENT))
    with pytest.raises(ValueError, match="the signer has expired"):
        reconcile(request, options)
