"""Which servers are trusted, and who the client is to them.

As in Go, a certificate that is trusted need not be an authority's, and need not keep to all rules
of RFC 5280.
"""

from __future__ import annotations

import base64
import binascii
import ssl
import tempfile
from dataclasses import dataclass, field
from functools import lru_cache

from kcm.http.faults import CallFailed

_MOST_CONTEXTS = 200  # that are kept, as upstream
UNUSABLE = b"-"  # authorities with which no context can be built


@dataclass(frozen=True)
class Trust:
    """What a server's certificate must be signed by, and the certificate that the server is shown.

    Without `authority`, the certificates that the system trusts are trusted. With `insecure`, any
    certificate is accepted. All are in PEM.
    """

    authority: bytes = field(default=b"", repr=False)
    certificate: bytes = field(default=b"", repr=False)  # of the client, with its key; b"" for none
    insecure: bool = False


def read_bundle(text: str) -> bytes:
    """Returns the authorities of a `caBundle`. No context can be built with a damaged one."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return UNUSABLE


def build_context(trust: Trust) -> ssl.SSLContext:
    """Returns the context of connections. Raises CallFailed for certificates that are unusable."""
    try:
        context = ssl.create_default_context(
            cadata=trust.authority.decode() if trust.authority else None
        )
        if trust.certificate:
            show_certificate(context, trust.certificate)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise CallFailed(f"unable to load root certificates: {error}") from None
    if trust.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def show_certificate(context: ssl.SSLContext, pem: bytes) -> None:
    """Shows servers a client certificate on new connections. `pem` has its key, too.

    Raises OSError, such as ssl.SSLError for a key that is another's.
    """
    with tempfile.NamedTemporaryFile(prefix="kcm-") as file:  # ssl reads keys from files
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name)


def check_certificate(pem: bytes) -> None:
    """Checks that a client certificate, with its key, can be shown.

    Raises OSError as `show_certificate`. The authorities of the system are not read, which takes
    30 ms.
    """
    show_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), pem)


@lru_cache(maxsize=_MOST_CONTEXTS)
def find_context(trust: Trust) -> ssl.SSLContext:
    """Returns the context of connections, the same one for the same trust. It must not be changed.

    Raises CallFailed for certificates that are unusable.
    """
    return build_context(trust)
