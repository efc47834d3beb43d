"""CSR cleaner: deletes signing requests that nobody needs any more.

Upstream looks at all requests once an hour. Here the key of each is delayed until its time.
Source: pkg/controller/certificates/cleaner/cleaner.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from kcm.api.certificates_v1 import APPROVED, DENIED, FAILED, CertificateSigningRequest
from kcm.apimachinery import certificates
from kcm.apimachinery.meta_v1 import shift_time
from kcm.sdk import Controller, Delete, Plan, View, Watch, own_key

KEPT_DECIDED = 3600  # seconds after an approval with a certificate, a denial, or a failure
KEPT_PENDING = 86_400  # seconds after the creation


class CSRCleanerController(Controller):
    """Deletes requests some time after they were decided, or were made and never decided. A key is
    a request.
    """

    name = "certificatesigningrequest-cleaner-controller"
    short_name = "csrcleaner"

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(CertificateSigningRequest, own_key),)

    def concurrent_syncs(self) -> int:
        return 1

    def reconcile(self, key: str, view: View) -> Plan:
        request = view.lister(CertificateSigningRequest).find(key)
        if request is None or request.deleting:
            return Plan()
        due = min(_list_deadlines(request), default=None)
        if due is None:
            return Plan()
        left = (due - view.now).total_seconds()
        return Plan(requeue_after=left) if left > 0 else Plan().then(Delete(request))


def _list_deadlines(request: CertificateSigningRequest) -> Iterator[datetime]:
    """Yields the times from which on the request is not needed."""
    created, issued = request.metadata.creation_timestamp, request.status.certificate
    if not request.status.conditions and created is not None:
        yield shift_time(created, KEPT_PENDING)
    for condition in request.status.conditions or ():
        decided = condition.last_update_time
        if condition.type == APPROVED and issued:
            yield from _list_expiries(issued)
        if decided is None:
            continue
        if condition.type in (DENIED, FAILED) or (condition.type == APPROVED and issued):
            yield shift_time(decided, KEPT_DECIDED)


def _list_expiries(issued: str) -> Iterator[datetime]:
    try:
        yield certificates.read_expiry(issued)
    except ValueError:
        return  # An older kcm, or a restored backup, stored what is no certificate.
