"""Signs and verifies JSON web tokens.

A verified token is remembered, so that the signature of a token that comes with each request is
checked once. What the token says is checked by others each time.

Source: JWTTokenGenerator and JWTTokenAuthenticator in pkg/serviceaccount/jwt.go, Kubernetes 1.33.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from kcm import errors
from kcm.api.core_v1 import ServiceAccount
from kcm.helpers.serviceaccount.claims import (
    EXTENDED_SECONDS,
    WARN_ONLY_SECONDS,
    BoundObjects,
    Claims,
    bound_claims,
)

# --- The keys of service account tokens, which are PEM files as upstream's.
#
# The id of a key is the hash of its public part, so that every process derives the same one.
# Importing the library for keys takes 20 ms, so it is imported by the first key.
#
# Source: keyIDFromPublicKey in pkg/serviceaccount/jwt.go, pkg/serviceaccount/openidmetadata.go and
# staging/src/k8s.io/client-go/util/keyutil/key.go, Kubernetes 1.33.


_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----.+?-----END \1-----", re.DOTALL)
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_MIN_RSA_BITS = 2048  # shorter ones are refused by the libraries that read the tokens


@dataclass(frozen=True)
class VerificationKey:
    """A public key with its id and the algorithm of its signatures, such as RS256."""

    id: str
    algorithm: str
    public: Any


@dataclass(frozen=True)
class SigningKey:
    """A private key, with its public part."""

    verification: VerificationKey
    private: Any = field(repr=False)


def ensure_key_file(path: Path) -> None:
    """Creates the file with a new ES256 key unless it exists. Only its owner may read it.

    Raises ConfigurationError.
    """
    if path.exists():
        return
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial.unlink(missing_ok=True)
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as out:
            out.write(pem)
        with suppress(FileExistsError):  # another process was faster, and its key counts
            os.link(partial, path)
        partial.unlink()
    except OSError as error:
        raise errors.ConfigurationError(f"the key file {path}: {error}") from None


def read_pem(path: Path, flag: str) -> bytes:
    """Returns the content of a key file. `flag` names the flag in messages.

    Raises ConfigurationError if it cannot be read or has no key.
    """
    try:
        pem = path.read_bytes()
    except OSError as error:
        raise errors.ConfigurationError(f"--{flag} {path}: {error.strerror}") from None
    if not _BLOCK.search(pem):
        raise errors.ConfigurationError(f"--{flag} {path}: it has no key in PEM format")
    return pem


@lru_cache(maxsize=8)
def parse_signing_key(pem: bytes) -> SigningKey:
    """Returns the first private key of a PEM text.

    Raises ConfigurationError for a text without one, and for a key of another kind than RSA or
    ECDSA.
    """
    for private in _load(pem, private=True):
        verification = _verification_key(private.public_key())
        _check_signature(private, verification)
        return SigningKey(verification, private)
    raise errors.ConfigurationError("there is no private key of RSA or ECDSA without a password")


def parse_verification_keys(pem: bytes) -> list[VerificationKey]:
    """Returns all public keys of a PEM text, also those of its private keys and certificates.

    Raises ConfigurationError for a text without any.
    """
    keys = [_verification_key(public) for public in _load(pem, private=False)]
    if not keys:
        raise errors.ConfigurationError("there is no public key of RSA or ECDSA")
    return keys


def read_signing_key(path: Path, flag: str) -> SigningKey:
    """Returns the private key of a file. Raises ConfigurationError, which names the flag."""
    try:
        return parse_signing_key(read_pem(path, flag))
    except errors.ConfigurationError as error:
        raise _naming(error, path, flag) from None


def read_verification_keys(paths: Iterable[Path], flag: str) -> list[VerificationKey]:
    """Returns the public keys of files. Raises ConfigurationError, which names the flag."""
    keys: list[VerificationKey] = []
    for path in paths:
        try:
            keys += parse_verification_keys(read_pem(path, flag))
        except errors.ConfigurationError as error:
            raise _naming(error, path, flag) from None
    return keys


def _naming(error: errors.ConfigurationError, path: Path, flag: str) -> errors.ConfigurationError:
    if error.message.startswith("--"):
        return error
    return errors.ConfigurationError(f"--{flag} {path}: {error.message}")


def _load(pem: bytes, *, private: bool) -> Sequence[Any]:
    """Returns the private or the public keys of all blocks. Blocks that are no keys are left out.

    Raises ConfigurationError for a key of another kind, and for one that cannot be read.
    """
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415

    keys: list[Any] = []
    for match in _BLOCK.finditer(pem):
        kind, block = match[1].decode(), match[0] + b"\n"
        try:
            if kind.endswith("PRIVATE KEY"):
                # Without OpenSSL's test of the primes, which takes 40 ms: see `_check_signature`.
                key: Any = serialization.load_pem_private_key(
                    block, None, unsafe_skip_rsa_key_validation=True
                )
                keys.append(key if private else key.public_key())
            elif kind.endswith("PUBLIC KEY") and not private:
                keys.append(serialization.load_pem_public_key(block))
            elif kind == "CERTIFICATE" and not private:
                keys.append(x509.load_pem_x509_certificate(block).public_key())
        except (ValueError, TypeError) as error:
            raise errors.ConfigurationError(f"a key cannot be read: {error}") from None
    return keys


def _check_signature(private: Any, verification: VerificationKey) -> None:
    """Raises ConfigurationError if what the key signs is not verified by its public part."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec, padding  # noqa: PLC0415

    how: tuple[Any, ...] = (ec.ECDSA(hashes.SHA256()),)
    if verification.algorithm == "RS256":
        how = (padding.PKCS1v15(), hashes.SHA256())
    text = b"kcm"
    try:
        verification.public.verify(private.sign(text, *how), text, *how)
    except (InvalidSignature, ValueError):
        raise errors.ConfigurationError(
            "a key cannot be read: its public part does not verify what it signs"
        ) from None


def _verification_key(public: Any) -> VerificationKey:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa  # noqa: PLC0415

    algorithm = ""
    if isinstance(public, rsa.RSAPublicKey) and public.key_size >= _MIN_RSA_BITS:
        algorithm = "RS256"
    elif isinstance(public, ec.EllipticCurvePublicKey):
        algorithm = _CURVES.get(public.curve.name, "")
    if not algorithm:
        raise errors.ConfigurationError(
            "keys must be RSA of at least 2048 bits, or ECDSA over P-256, P-384 or P-521"
        )
    return VerificationKey(compute_key_id(public), algorithm, public)


def compute_key_id(public: Any) -> str:
    """Returns the id of a public key of any kind: 43 letters, digits, `-` and `_`."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415

    der = public.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    digest = base64.urlsafe_b64encode(hashlib.sha256(der).digest())
    return digest.rstrip(b"=").decode()


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
        self._verified: OrderedDict[bytes, Mapping[str, Any]] = OrderedDict()  # keyed by hash

    def verify(self, token: str, issuers: Collection[str]) -> Claims | None:
        """Returns the claims of a token, None if it names none of these issuers.

        Raises InvalidToken if its signature is wrong. Neither times nor audiences are checked.
        """
        if read_unverified_issuer(token) not in issuers:
            return None
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        claims = self._verified.get(digest)
        if claims is None:
            claims = self._check(token)
            self._verified[digest] = claims
            while len(self._verified) > _REMEMBERED:
                self._verified.popitem(last=False)
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


# --- Issues bound tokens. The API server and kubelets that work on Redis do it alike.
#
# Source: pkg/registry/core/serviceaccount/storage/token.go, Kubernetes 1.33.


DEFAULT_ISSUER = "https://kubernetes.default.svc.cluster.local"


@dataclass(frozen=True)
class Issuer:
    """A key, the name that goes into tokens, and the audiences that the API server has."""

    key: SigningKey = field(repr=False)
    name: str
    audiences: tuple[str, ...]
    extends: bool = True  # whether tokens that admission mounts are valid for a year

    def issue(
        self,
        account: ServiceAccount,
        bound: BoundObjects,
        now: datetime,
        *,
        audiences: Sequence[str],
        seconds: int,
    ) -> str:
        """Returns a token for `seconds` seconds.

        One that admission mounts into a pod is valid for a year, but counts as stale after the
        time that was requested.
        """
        extended = (
            self.extends
            and bound.pod is not None
            and seconds == WARN_ONLY_SECONDS
            and set(audiences) <= set(self.audiences)
        )
        claims = bound_claims(
            account,
            bound,
            audiences,
            now,
            seconds=EXTENDED_SECONDS if extended else seconds,
            warn_after=seconds if extended else 0,
        )
        return sign(self.key, self.name, claims)
