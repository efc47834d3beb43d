"""Validation of ClusterTrustBundles.

Source: pkg/apis/certificates/validation/validation.go (ValidateClusterTrustBundle) and
pkg/apis/core/validation/names.go (ValidateClusterTrustBundleName), Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.certificates_v1beta1 import ClusterTrustBundle, name_prefix
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import Faults, invalid, require_unchanged, too_long
from kcm.apimachinery.trust_bundles import find_bundle_faults
from kcm.kinds.validation import meta
from kcm.kinds.validation.certificates import signer_name

_MOST_BYTES = 1024 * 1024
_BUNDLE = "spec.trustBundle"


def create(bundle: ClusterTrustBundle) -> Faults:
    return _bundle(bundle) + _certificates(bundle.spec.trust_bundle)


def update(new: ClusterTrustBundle, old: ClusterTrustBundle) -> Faults:
    """Checks a change. Certificates that stay are not read again."""
    faults = meta.metadata_update(new, old) + _bundle(new)
    if new.spec.trust_bundle != old.spec.trust_bundle:
        faults += _certificates(new.spec.trust_bundle)
    before, after = old.spec.signer_name or "", new.spec.signer_name or ""
    return faults + require_unchanged("spec.signerName", after, before)


def _bundle(bundle: ClusterTrustBundle) -> Faults:
    signer = bundle.spec.signer_name or ""
    faults = meta.metadata(
        bundle, namespaced=False, name_rule=lambda name: bundle_name_faults(signer, name)
    )
    return faults + (signer_name(signer, "spec.signerName") if signer else [])


def bundle_name_faults(signer: str, name: str) -> list[str]:
    """Returns the faults of a bundle's name. `signer` is "" for a bundle of no signer."""
    if not signer:
        if ":" in name:
            return ['ClusterTrustBundle without signer name must not have ":" in its name']
        return names.subdomain_faults(name)
    prefix = name_prefix(signer)
    if not name.startswith(prefix):
        why = f"ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"
        return [why]
    return names.subdomain_faults(name.removeprefix(prefix))


def _certificates(text: str) -> Faults:
    if len(text.encode(errors="replace")) > _MOST_BYTES:
        return [too_long(_BUNDLE, _MOST_BYTES)]
    return [invalid(_BUNDLE, "<value omitted>", fault) for fault in find_bundle_faults(text)]
