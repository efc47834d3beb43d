"""Signs and verifies JSON web tokens.

A verified token is remembered, so that the signature of a token that comes with each request is
checked once. What the token says is checked by others each time.

Source: JWTTokenGenerator and JWTTokenAuthenticator in pkg/serviceaccount/jwt.go, Kubernetes 1.33.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from kcm import errors
from kcm.helpers.serviceaccount.claims import Claims
from kcm.helpers.serviceaccount.keys import SigningKey, VerificationKey

LONGEST = 16 * 1024  # characters of a token; longer ones are nobody's
_REMEMBERED = 4096  # tokens
_UNCHECKED = {f"verify_{name}": False for name in ("aud", "exp", "iat", "iss", "jti", "nbf", "sub")}


class InvalidToken(errors.KcmError):
    """The token is not valid."""


def sign(key: SigningKey, issuer: str, claims: Claims) -> str:
    """Returns a signed token with these claims and the issuer."""
    import jwt  # noqa: PLC0415 - takes 0.1 s, and most processes sign nothing

    return jwt.encode(
        {**claims, "iss": issuer},
        key.private,
        algorithm=key.verification.algorithm,
        headers={"kid": key.verification.id, "typ": None},
    )


def read_unverified_issuer(token: str) -> str:
    """Returns the issuer that a token names, "" if it is no token. Nothing of it is verified."""
    parts = token.split(".")
    if len(parts) != 3 or len(token) > LONGEST:
        return ""
    try:
        padded = parts[1] + "=" * (-len(parts[1]) % 4)
        payload = json.loads(base64.urlsafe_b64decode(padded))
    except (ValueError, RecursionError):
        return ""
    issuer = payload.get("iss") if isinstance(payload, dict) else None
    return issuer if isinstance(issuer, str) else ""


class Verifier:
    """Verifies the signatures of tokens with a fixed set of keys. Thread-safe."""

    def __init__(self, keys: Iterable[VerificationKey]) -> None:
        self._keys = tuple(keys)
        self._known: OrderedDict[bytes, Mapping[str, Any]] = OrderedDict()  # keyed by hash

    def verify(self, token: str, issuers: Collection[str]) -> Claims | None:
        """Returns the claims of a token, None if it names none of these issuers.

        Raises InvalidToken if its signature is wrong. Neither times nor audiences are checked.
        """
        if read_unverified_issuer(token) not in issuers:
            return None
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        claims = self._known.get(digest)
        if claims is None:
            claims = self._check(token)
            self._known[digest] = claims
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return claims

    def _check(self, token: str) -> Mapping[str, Any]:
        import jwt  # noqa: PLC0415 - as in `sign`

        try:
            wanted = jwt.get_unverified_header(token).get("kid") or ""
        except jwt.PyJWTError as error:
            raise InvalidToken(str(error)) from None
        keys = [key for key in self._keys if not wanted or key.id == wanted]
        if not keys:
            raise InvalidToken("invalid signature, no keys found")
        for key in keys:
            try:
                options: Any = _UNCHECKED
                return jwt.decode(token, key.public, [key.algorithm], options)
            except (jwt.PyJWTError, ValueError):
                continue
        raise InvalidToken("the signature cannot be verified with any key")
