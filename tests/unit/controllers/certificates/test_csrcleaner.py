"""The CSR cleaner, after TestCleanerWithApprovedExpiredCSR of upstream's cleaner_test.go."""

from __future__ import annotations

import base64
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from kcm.api.certificates_v1 import (
    API_SERVER_CLIENT,
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
    CertificateSigningRequestStatus,
)
from kcm.apimachinery.certificates import parse_request
from kcm.controllers.certificates.csrcleaner import CSRCleanerController
from kcm.helpers.authority import load_authority
from kcm.reconcile.plan import Delete, Plan
from kcm.testing.views import NOW, FakeView
from tests.signing_requests import build_pem_request, encode, signing_request, write_authority

HOUR = timedelta(hours=1)


def reconcile(request: CertificateSigningRequest) -> Plan:
    controller = CSRCleanerController()
    return controller.reconcile("csr", FakeView(request, controller=controller))


def build(
    *types: str,
    created: timedelta,
    updated: timedelta | None = None,
    certificate: str | None = None,
) -> CertificateSigningRequest:
    """Returns a request of this age, with conditions that were updated so long ago."""
    conditions = [
        CertificateSigningRequestCondition(
            type=kind, status="True", last_update_time=None if updated is None else NOW - updated
        )
        for kind in types
    ]
    request = signing_request(build_pem_request(), ["client auth"], API_SERVER_CLIENT)
    return request.with_metadata(creation_timestamp=NOW - created).with_status(
        CertificateSigningRequestStatus(conditions=conditions or None, certificate=certificate)
    )


def issue(folder: Path, expires: datetime) -> str:
    """Returns a certificate that expires then."""
    authority = load_authority(*map(str, write_authority(folder, NOW - 10 * HOUR)))
    start = expires - HOUR
    pem = authority.sign(parse_request(encode(build_pem_request())), ["client auth"], HOUR, start)
    return base64.b64encode(pem).decode()


SOON = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("types", "created", "updated", "issued", "gone"),
    [
        (("Approved",), SOON, SOON, True, False),
        (("Approved",), 2 * HOUR, 2 * HOUR, True, True),
        (("Approved",), 2 * HOUR, 2 * HOUR, False, False),
        (("Denied",), SOON, SOON, False, False),
        (("Denied",), 2 * HOUR, 2 * HOUR, False, True),
        (("Failed",), 2 * HOUR, 2 * HOUR, False, True),
        (("Approved", "Failed"), SOON, SOON, False, False),
        ((), 2 * HOUR, None, False, False),
        ((), 25 * HOUR, None, False, True),
        (("Denied",), 48 * HOUR, None, False, False),
    ],
)
def test_a_request_is_deleted_when_nobody_needs_it(
    tmp_path: Path,
    types: tuple[str, ...],
    created: timedelta,
    updated: timedelta | None,
    *,
    issued: bool,
    gone: bool,
) -> None:
    certificate = issue(tmp_path, NOW + HOUR) if issued else None
    request = build(*types, created=created, updated=updated, certificate=certificate)
    plan = reconcile(request)
    assert [type(write) for write in plan.writes] == ([Delete] if gone else [])


def test_a_request_whose_certificate_expires_is_deleted_then(tmp_path: Path) -> None:
    expired = issue(tmp_path, NOW - SOON)
    old = build("Approved", created=SOON, updated=SOON, certificate=expired)
    assert reconcile(old).writes == [Delete(old)]
    lasting = issue(tmp_path, NOW + timedelta(minutes=10))
    young = build("Approved", created=SOON, updated=SOON, certificate=lasting)
    plan = reconcile(young)
    assert plan.writes == []
    assert plan.requeue_after == 600


def test_a_pending_request_is_looked_at_again_after_a_day() -> None:
    assert reconcile(build(created=HOUR)).requeue_after == 23 * 3600


def test_a_certificate_that_is_none_does_not_stop_the_clock() -> None:
    request = build("Approved", created=SOON, updated=SOON, certificate="!")
    assert reconcile(request).requeue_after == 3600 - 60
