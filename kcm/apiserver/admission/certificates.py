"""The admission plugins of CertificateSigningRequests and ClusterTrustBundles: who may approve,
sign and attest, and what may be asked for.

Source: admission.go in approval, signing, ctbattest and subjectrestriction of
plugin/pkg/admission/certificates, and pkg/registry/certificates/certificates/strategy.go
(CertificateRequester), Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.admissionregistration_v1 import CREATE, UPDATE
from kcm.api.certificates_v1 import API_SERVER_CLIENT, CertificateSigningRequest
from kcm.api.certificates_v1beta1 import ClusterTrustBundle
from kcm.apimachinery import certificates
from kcm.apiserver.admission.request import request_of
from kcm.apiserver.auth.attributes import MASTERS, Attributes
from kcm.apiserver.auth.authorizer import Caller
from kcm.store.admission.plugin import Plugin, Write, forbid

_GROUP, _VERSION, _SIGNERS = "certificates.k8s.io", "v1", "signers"
_REQUESTS = CertificateSigningRequest.resource.name


class CertificateApproval(Plugin):
    """Refuses conditions of a signing request from who may not approve for its signer."""

    name = "CertificateApproval"

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        return (resource, subresource, operation) == (_REQUESTS, "approval", UPDATE)

    def validate(self, write: Write) -> None:
        """Raises: Forbidden."""
        _require_permission(write, "approve")


class CertificateSigning(Plugin):
    """Refuses certificates and failures from who may not sign for the request's signer."""

    name = "CertificateSigning"

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        return (resource, subresource, operation) == (_REQUESTS, "status", UPDATE)

    def validate(self, write: Write) -> None:
        """Raises: Forbidden."""
        old = write.old_as(CertificateSigningRequest)
        if write.new_as(CertificateSigningRequest).status != old.status:
            _require_permission(write, "sign")


class ClusterTrustBundleAttest(Plugin):
    """Refuses a signer's bundle from who may not attest for that signer."""

    name = "ClusterTrustBundleAttest"

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        return resource == ClusterTrustBundle.resource.name and operation in (CREATE, UPDATE)

    def validate(self, write: Write) -> None:
        """Raises: Forbidden."""
        request, new, old = request_of(write), write.new_as(ClusterTrustBundle), write.old
        signer = new.spec.signer_name
        same = isinstance(old, ClusterTrustBundle) and old.spec == new.spec
        if request is None or not signer or same or _may(request.caller, "attest", signer):
            return
        raise forbid(new, f'user not permitted to attest for signerName "{signer}"')


class CertificateSubjectRestriction(Plugin):
    """Refuses requests for client certificates that would be in the group system:masters."""

    name = "CertificateSubjectRestriction"

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        return (resource, subresource, operation) == (_REQUESTS, "", CREATE)

    def validate(self, write: Write) -> None:
        """Raises: Forbidden."""
        given = write.new_as(CertificateSigningRequest)
        if request_of(write) is None or given.spec.signer_name != API_SERVER_CLIENT:
            return
        if MASTERS in certificates.parse_request(given.spec.request).organizations:
            why = f"use of {API_SERVER_CLIENT} signer with {MASTERS} group is not allowed"
            raise forbid(given, why)


class CertificateRequester(Plugin):
    """Writes down in a signing request who sent it."""

    name = "CertificateRequester"

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        return (resource, subresource, operation) == (_REQUESTS, "", CREATE)

    def admit(self, write: Write) -> Write:
        request, given = request_of(write), write.new_as(CertificateSigningRequest)
        if request is None:
            return write
        user = request.caller.user
        return write.with_new(
            given.with_spec(
                given.spec.replace(
                    username=user.name or None,
                    uid=user.uid or None,
                    groups=list(user.groups) or None,
                    extra={name: list(values) for name, values in user.extra} or None,
                )
            )
        )


def _require_permission(write: Write, verb: str) -> None:
    """Raises Forbidden unless the user has this verb on the signer, or on all of its domain."""
    request, old = request_of(write), write.old_as(CertificateSigningRequest)
    signer = old.spec.signer_name
    if request is not None and not _may(request.caller, verb, signer):
        raise forbid(old, f'user not permitted to {verb} requests with signerName "{signer}"')


def _may(caller: Caller, verb: str, signer: str) -> bool:
    return any(
        caller.may(Attributes(verb, _GROUP, _VERSION, _SIGNERS, name=name))
        for name in (signer, f"{signer.partition('/')[0]}/*")
    )
