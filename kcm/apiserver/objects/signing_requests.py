"""CertificateSigningRequests: the conditions that their approval sets.

Who may approve and sign is decided in `kcm.apiserver.admission.certificates`.

Source: pkg/registry/certificates/certificates/strategy.go, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import datetime

from kcm import errors
from kcm.api.certificates_v1 import (
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
)
from kcm.kinds.validation import certificates as validation
from kcm.store.strategies.updating import take_status_metadata


def with_approval(
    old: CertificateSigningRequest,
    sent: CertificateSigningRequest,
    now: datetime,
) -> CertificateSigningRequest:
    """Returns the request with the conditions that were sent to its approval subresource.

    Raises Invalid for conditions that may not be set.
    """
    conditions = _with_times(sent.status.conditions or [], old, now)
    new = take_status_metadata(old, sent)
    new = new.with_status(old.status.replace(conditions=conditions or None))
    faults = validation.approval_update(new, old)
    if faults:
        raise errors.Invalid(faults, kind=old.kind, name=old.name)
    return new


def _with_times(
    conditions: list[CertificateSigningRequestCondition],
    old: CertificateSigningRequest,
    now: datetime,
) -> list[CertificateSigningRequestCondition]:
    """Returns the conditions with the times that they lack.

    A condition whose status is as before keeps the time of its last transition.
    """
    now = now.replace(microsecond=0)
    kept = {(c.type, c.status): c.last_transition_time for c in old.status.conditions or ()}
    return [
        condition.replace(
            last_update_time=condition.last_update_time or now,
            last_transition_time=condition.last_transition_time
            or kept.get((condition.type, condition.status))
            or now,
        )
        for condition in conditions
    ]
