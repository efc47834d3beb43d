"""Authenticators, which find out which user has sent a request.

A further method, such as service-account tokens, is one more authenticator in the chain.

Source: staging/src/k8s.io/apiserver/pkg/authentication/{request,token}, Kubernetes 1.33.
"""

from __future__ import annotations

import hashlib
import hmac
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from kcm import errors
from kcm.apiserver.auth.attributes import User
from kcm.apiserver.http_errors import Unauthorized

# --- Authentication by client certificate: the common name is the user, organizations are groups.
#
# Source: staging/src/k8s.io/apiserver/pkg/authentication/request/x509, Kubernetes 1.33.


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


@dataclass(frozen=True)
class Credentials:
    """The credentials of a request: its Authorization header and its connection's certificate.

    `peer` is the address that the request came from.
    """

    authorization: str | None = field(default=None, repr=False)
    certificate: PeerCertificate | None = None
    peer: str = ""

    @property
    def token(self) -> str:
        """Returns the bearer token, "" if there is none."""
        scheme, _, rest = (self.authorization or "").strip().partition(" ")
        words = rest.split()
        return words[0] if scheme.lower() == "bearer" and len(words) == 1 else ""


class Authenticator(Protocol):
    """Authenticates users by one kind of credentials."""

    def authenticate(self, given: Credentials) -> User | None:
        """Returns the user, or None if there are no credentials of this authenticator's kind.

        Raises Unauthorized if there are, but they are wrong.
        """
        ...


class Certificates:
    """Authenticates users by client certificates that an authority of --client-ca-file signed."""

    def authenticate(self, given: Credentials) -> User | None:
        return None if given.certificate is None else given.certificate.user()


class Tokens:
    """Authenticates users by bearer tokens. It keeps only hashes of the tokens."""

    def __init__(self, users: Mapping[str, User]) -> None:
        self._users = {_hash(token): user for token, user in users.items() if token}

    def authenticate(self, given: Credentials) -> User | None:
        return self.user_of(given.token) if given.token else None

    def user_of(self, token: str) -> User | None:
        """Returns the user of a token, None for an unknown token.

        All known tokens are compared, each in constant time, so that the time reveals nothing.
        """
        wanted, owner = _hash(token), None
        for token_of_user, user in self._users.items():
            if hmac.compare_digest(token_of_user, wanted):
                owner = user
        return owner


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


class Chain:
    """Tries several authenticators, one after the other."""

    def __init__(self, ways: Iterable[Authenticator]) -> None:
        self._ways = tuple(ways)

    def authenticate(self, given: Credentials) -> User | None:
        """Returns the user, None if the request has no credentials.

        Raises Unauthorized if it has some, but no authenticator accepts them.
        """
        refused = None
        for way in self._ways:
            try:
                user = way.authenticate(given)
            except Unauthorized as error:
                refused = error
                continue
            if user is not None:
                return user
        if refused is not None or given.authorization is not None:
            raise refused or Unauthorized()
        return None
