"""Authenticators: the ways to know who sent a request.

A further way, such as service-account tokens, is one more authenticator in the chain.

Source: staging/src/k8s.io/apiserver/pkg/authentication/{request,token}, Kubernetes 1.33.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kcm.apiserver.auth.certificates import PeerCertificate
from kcm.apiserver.auth.users import User
from kcm.apiserver.http_errors import Unauthorized


@dataclass(frozen=True)
class Credentials:
    """What a request brought: its Authorization header, and the certificate of its connection."""

    authorization: str | None = field(default=None, repr=False)
    certificate: PeerCertificate | None = None

    @property
    def token(self) -> str:
        """The bearer token, "" for none."""
        scheme, _, rest = (self.authorization or "").strip().partition(" ")
        words = rest.split()
        return words[0] if scheme.lower() == "bearer" and len(words) == 1 else ""


class Authenticator(Protocol):
    """One way to know a user."""

    def authenticate(self, given: Credentials) -> User | None:
        """Returns the user, None when these credentials are not of its kind.

        Raises Unauthorized for credentials of its kind that are wrong.
        """
        ...


class Certificates:
    """Knows users by client certificates that are signed by --client-ca-file."""

    def authenticate(self, given: Credentials) -> User | None:
        return None if given.certificate is None else given.certificate.user()


class Tokens:
    """Knows users by bearer tokens. Only hashes of the tokens are kept."""

    def __init__(self, users: Mapping[str, User]) -> None:
        self._users = {_hash(token): user for token, user in users.items() if token}

    def authenticate(self, given: Credentials) -> User | None:
        return self.user_of(given.token) if given.token else None

    def user_of(self, token: str) -> User | None:
        """Returns the owner of a token, or None.

        All tokens are compared, each in constant time, so the time reveals nothing.
        """
        wanted, owner = _hash(token), None
        for known, user in self._users.items():
            if hmac.compare_digest(known, wanted):
                owner = user
        return owner


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


class Chain:
    """Asks one authenticator after the other. Raises Unauthorized when none knows the
    credentials.
    """

    def __init__(self, ways: Iterable[Authenticator]) -> None:
        self._ways = tuple(ways)

    def authenticate(self, given: Credentials) -> User | None:
        """Returns the user, None without any credentials."""
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
