"""Bundles of certificates in PEM: what is wrong with one.

Source: validateTrustBundle in pkg/apis/certificates/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

# A body ends at the next five dashes, so that a text with many beginnings is read once.
_BODY = r"[^-]*(?:-(?!----)[^-]*)*"
_BLOCK = re.compile(rf"-----BEGIN ([^\n-]*)-----[ \t\r]*\n({_BODY})-----END \1-----")


def find_bundle_faults(text: str) -> list[str]:
    """Returns what is wrong with a bundle: with its entries, or else with all of them together."""
    seen: dict[bytes, list[int]] = {}
    faults = []
    for index, (label, body) in enumerate(_BLOCK.findall(text)):
        der, fault = _read_entry(label, body)
        if fault:
            faults.append(f"entry {index} {fault}")
        else:
            seen.setdefault(der, []).append(index)
    if faults:
        return faults
    if not seen:
        return ["at least one trust anchor must be provided"]
    return list(_find_duplicates(seen))


def _find_duplicates(seen: dict[bytes, list[int]]) -> Iterator[str]:
    for places in seen.values():
        if len(places) > 1:
            yield f"duplicate trust anchor (indices [{' '.join(map(str, places))}])"


def _read_entry(label: str, body: str) -> tuple[bytes, str]:
    """Returns the bytes of an entry, and what is wrong with it, "" if nothing is."""
    from cryptography import x509  # noqa: PLC0415 - most processes never see a certificate

    if label != "CERTIFICATE":
        return b"", f"has bad block type: {label}"
    if ":" in body:
        return b"", "has PEM block headers"
    unreadable = b"", "does not parse as X.509"
    try:
        der = base64.b64decode("".join(body.split()), validate=True)
    except (binascii.Error, ValueError):
        return unreadable
    try:
        extensions = x509.load_der_x509_certificate(der).extensions
        constraints = extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        return der, "does not have the CA bit set"
    except Exception:  # noqa: BLE001 - the library raises exceptions of many types
        return unreadable
    return der, "" if constraints.ca else "does not have the CA bit set"
