"""Authentication by client certificate: the common name is the user, organizations are groups.

Source: staging/src/k8s.io/apiserver/pkg/authentication/request/x509, Kubernetes 1.33.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kcm import errors
from kcm.apiserver.auth.attributes import User
from kcm.apiserver.http_errors import Unauthorized


@dataclass(frozen=True)
class PeerCertificate:
    """The client certificate of a connection. TLS has verified its signature."""

    name: str
    groups: tuple[str, ...]
    expires: float  # seconds since 1970
    now: Callable[[], float] = time.time

    def user(self) -> User | None:
        """Returns the user of the certificate, None if it has no name.

        Raises Unauthorized once the certificate has expired, since connections outlive
        certificates.
        """
        if self.now() >= self.expires:
            raise Unauthorized
        return User(self.name, groups=self.groups) if self.name else None


def peer_of(described: Mapping[str, Any] | None) -> PeerCertificate | None:
    """Returns the certificate from what `ssl.SSLObject.getpeercert()` returns, or None."""
    if not described:
        return None
    pairs = [pair for part in described.get("subject", ()) for pair in part]
    names = [value for kind, value in pairs if kind == "commonName"]
    groups = tuple(value for kind, value in pairs if kind == "organizationName")
    expires = float(ssl.cert_time_to_seconds(described["notAfter"]))
    return PeerCertificate(names[-1] if names else "", groups, expires)


def check_authorities(path: Path, flag: str = "--client-ca-file") -> None:
    """Raises ConfigurationError unless the file holds certificates of authorities.

    `path` is the value of the flag.
    """
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(path))
    except (OSError, ssl.SSLError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise errors.ConfigurationError(f"{flag} {path}: {why}") from None
    if not context.get_ca_certs():
        raise errors.ConfigurationError(f"{flag} {path}: it has no certificates")
