"""CertificateSigningRequests: who asks, who approves, and who signs.

Source: pkg/registry/certificates/certificates/strategy.go and plugin/pkg/admission/certificates,
Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import datetime

from kcm import errors
from kcm.api.certificates_v1 import (
    API_SERVER_CLIENT,
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
)
from kcm.api.certificates_v1beta1 import ClusterTrustBundle
from kcm.apimachinery import certificates
from kcm.apiserver.auth.attributes import Attributes
from kcm.apiserver.auth.authorizer import Caller
from kcm.apiserver.auth.users import MASTERS, User
from kcm.kinds.validation import certificates as validation

_GROUP, _VERSION, _SIGNERS = "certificates.k8s.io", "v1", "signers"


def with_approval(
    caller: Caller,
    old: CertificateSigningRequest,
    sent: CertificateSigningRequest,
    now: datetime,
) -> CertificateSigningRequest:
    """Returns the request with the conditions that were sent to its approval subresource.

    Raises Invalid for conditions that may not be set, and Forbidden unless the user may approve
    requests for this signer.
    """
    _require_permission(caller, "approve", old)
    conditions = _with_times(sent.status.conditions or [], old, now)
    new = old.with_status(old.status.replace(conditions=conditions or None))
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


def with_requester(request: CertificateSigningRequest, user: User) -> CertificateSigningRequest:
    """Returns a new request with the user who sent it.

    Raises Forbidden for a client certificate that would be in the group system:masters.
    """
    if request.spec.signer_name == API_SERVER_CLIENT and _asks_for_masters(request):
        why = f"use of {API_SERVER_CLIENT} signer with {MASTERS} group is not allowed"
        raise _forbidden(request.name, why)
    return request.with_spec(
        request.spec.replace(
            username=user.name or None,
            uid=user.uid or None,
            groups=list(user.groups) or None,
            extra={name: list(values) for name, values in user.extra} or None,
        )
    )


def _asks_for_masters(request: CertificateSigningRequest) -> bool:
    try:
        return MASTERS in certificates.parse_request(request.spec.request).organizations
    except ValueError:
        return False  # validation rejects the request


def check_signing(
    caller: Caller, new: CertificateSigningRequest, old: CertificateSigningRequest
) -> None:
    """Raises Forbidden if a status update signs or fails a request and the user may not do so."""
    if new.status != old.status:
        _require_permission(caller, "sign", old)


def check_attestation(
    caller: Caller, new: ClusterTrustBundle, old: ClusterTrustBundle | None
) -> None:
    """Raises Forbidden if a bundle is a signer's and the user may not attest for that signer.

    Source: plugin/pkg/admission/certificates/ctbattest/admission.go, Kubernetes 1.33.
    """
    signer = new.spec.signer_name
    if not signer or (old is not None and old.spec == new.spec) or _may(caller, "attest", signer):
        return
    why = f'user not permitted to attest for signerName "{signer}"'
    raise _forbidden(new.name, why, "clustertrustbundles")


def _require_permission(caller: Caller, verb: str, request: CertificateSigningRequest) -> None:
    """Raises Forbidden unless the user has this verb on the signer, or on all of its domain."""
    signer = request.spec.signer_name
    if not _may(caller, verb, signer):
        why = f'user not permitted to {verb} requests with signerName "{signer}"'
        raise _forbidden(request.name, why)


def _may(caller: Caller, verb: str, signer: str) -> bool:
    return any(
        caller.may(Attributes(verb, _GROUP, _VERSION, _SIGNERS, name=name))
        for name in (signer, f"{signer.partition('/')[0]}/*")
    )


def _forbidden(name: str, why: str, plural: str = "certificatesigningrequests") -> errors.Forbidden:
    resource = f"{plural}.{_GROUP}"
    return errors.Forbidden(
        f'{resource} "{name}" is forbidden: {why}', resource=resource, name=name
    )
