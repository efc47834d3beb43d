"""Validation of CertificateSigningRequests.

Source: pkg/apis/certificates/validation/validation.go and
pkg/apis/core/validation/names.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api.certificates_v1 import (
    APPROVED,
    DENIED,
    FAILED,
    LEGACY_UNKNOWN,
    USAGES,
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
)
from kcm.apimachinery import certificates, names
from kcm.apimachinery.field_errors import (
    Faults,
    duplicate,
    forbidden,
    invalid,
    invalid_all,
    not_supported,
    required,
    too_long,
)
from kcm.apimachinery.names import NameFaults
from kcm.kinds.validation import meta

_MIN_EXPIRATION = 600  # seconds
_SUBDOMAIN, _LABEL = 253, 63  # characters
_SIGNER_NAME = _SUBDOMAIN + 1 + _SUBDOMAIN + 1 + _LABEL
_STATUSES = ("False", "True", "Unknown")
_APPROVAL = (APPROVED, DENIED)


def create(request: CertificateSigningRequest) -> Faults:
    """Checks a new request, its signature included."""
    # As upstream, every name is accepted that can be part of a path.
    faults = meta.metadata(request, namespaced=False, name_rule=names.path_segment_faults)
    return faults + _spec(request) + _conditions(request, ()) + _certificate(request)


def update(new: CertificateSigningRequest, old: CertificateSigningRequest) -> Faults:
    """Checks a change of the metadata; the rest cannot be changed in this way."""
    return meta.metadata_update(new, old)


def status_update(new: CertificateSigningRequest, old: CertificateSigningRequest) -> Faults:
    """Checks what a signer wrote: a certificate, once, or the condition Failed."""
    faults = (
        meta.metadata_update(new, old)
        + _conditions(new, _types(old))
        + _validate_decisions_kept(new, old)
    )
    for kind in _APPROVAL:
        before, after = _of_type(old, kind), _of_type(new, kind)
        path = "status.conditions"
        if len(after) > len(before):
            faults.append(forbidden(path, f'updates may not add a condition of type "{kind}"'))
        elif len(after) == len(before) and after != before:
            faults.append(forbidden(path, f'updates may not modify a condition of type "{kind}"'))
    if (new.status.certificate or "") != (old.status.certificate or ""):
        faults += _certificate(new)
        if old.status.certificate:
            detail = "updates may not modify existing certificate content"
            faults.append(forbidden("status.certificate", detail))
    return faults


def approval_update(new: CertificateSigningRequest, old: CertificateSigningRequest) -> Faults:
    """Checks an approval or denial."""
    return (
        meta.metadata_update(new, old)
        + _conditions(new, _types(old))
        + _validate_decisions_kept(new, old)
    )


def _spec(request: CertificateSigningRequest) -> Faults:
    spec, faults = request.spec, []
    try:
        certificates.check_signature(certificates.parse_request(spec.request))
    except ValueError as error:
        faults.append(invalid("spec.request", spec.request, str(error)))
    faults += _usages(spec.usages or ())
    if spec.signer_name == LEGACY_UNKNOWN:
        detail = "the legacy signerName is not allowed via this API version"
        faults.append(invalid("spec.signerName", spec.signer_name, detail))
    else:
        faults += signer_name(spec.signer_name, "spec.signerName")
    seconds = spec.expiration_seconds
    if seconds is not None and seconds < _MIN_EXPIRATION:
        detail = "may not specify a duration less than 600 seconds (10 minutes)"
        faults.append(invalid("spec.expirationSeconds", seconds, detail))
    return faults


def _usages(usages: Sequence[str]) -> Faults:
    faults: Faults = [] if usages else [required("spec.usages")]
    seen: set[str] = set()
    for number, usage in enumerate(usages):
        path = f"spec.usages[{number}]"
        if usage not in USAGES:
            faults.append(not_supported(path, usage, USAGES))
        if usage in seen:
            faults.append(duplicate(path, usage))
        seen.add(usage)
    return faults


def signer_name(name: str, path: str) -> Faults:
    """Checks the name of a signer: a domain, a slash, and a path of dotted names."""
    if not name:
        return [required(path)]
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(path, name, detail)]
    faults: Faults = []
    if len(domain) > _SUBDOMAIN:
        faults.append(too_long(path, _SUBDOMAIN))
    faults += _labels(domain, path, names.label_faults)
    if "." not in domain:
        detail = "should be a domain with at least two segments separated by dots"
        faults.append(invalid(path, domain, detail))
    faults += _labels(rest, path, names.subdomain_faults)
    if len(name) > _SIGNER_NAME:
        faults.append(too_long(path, _SIGNER_NAME))
    return faults


def _labels(text: str, path: str, rule: NameFaults) -> Faults:
    """Returns the faults of the first wrong label between the dots of a text."""
    for label in text.split("."):
        if complaints := rule(label):
            told = (f'validating label "{label}": {complaint}' for complaint in complaints)
            return invalid_all(path, text, told)
    return []


def _conditions(request: CertificateSigningRequest, before: Sequence[str]) -> Faults:
    """Checks the conditions. `before` are the types of those that the request had already."""
    faults: Faults = []
    seen: list[str] = []
    may_be_both = {*_APPROVAL} <= set(before)
    for number, condition in enumerate(request.status.conditions or ()):
        path = f"status.conditions[{number}]"
        if not condition.type:
            faults.append(required(f"{path}.type"))
        faults += _condition_status(condition, f"{path}.status")
        other = {APPROVED: DENIED, DENIED: APPROVED}.get(condition.type)
        if other in seen and not may_be_both:
            detail = "Approved and Denied conditions are mutually exclusive"
            faults.append(invalid(f"{path}.type", condition.type, detail))
        if condition.type in seen and len(set(before)) == len(before):
            faults.append(duplicate(f"{path}.type", condition.type))
        seen.append(condition.type)
    return faults


def _condition_status(condition: CertificateSigningRequestCondition, path: str) -> Faults:
    allowed = ("True",) if condition.type in (*_APPROVAL, FAILED) else _STATUSES
    if not condition.status:
        return [required(path)]
    if condition.status not in allowed:
        return [not_supported(path, condition.status, allowed)]
    return []


def _certificate(request: CertificateSigningRequest) -> Faults:
    try:
        if request.status.certificate:
            certificates.check_certificates(request.status.certificate)
    except ValueError as error:
        return [invalid("status.certificate", "<certificate data>", str(error))]
    return []


def _validate_decisions_kept(
    new: CertificateSigningRequest, old: CertificateSigningRequest
) -> Faults:
    """Checks that no decision is taken back."""
    return [
        forbidden("status.conditions", f'updates may not remove a condition of type "{kind}"')
        for kind in (*_APPROVAL, FAILED)
        if len(_of_type(new, kind)) < len(_of_type(old, kind))
    ]


def _types(request: CertificateSigningRequest) -> list[str]:
    return [condition.type for condition in request.status.conditions or ()]


def _of_type(
    request: CertificateSigningRequest, kind: str
) -> list[CertificateSigningRequestCondition]:
    return [c for c in request.status.conditions or () if c.type == kind]
