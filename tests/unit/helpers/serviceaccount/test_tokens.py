from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa

from kcm import errors
from kcm.api.core_v1 import Node, Pod, Secret, ServiceAccount
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.helpers.serviceaccount import discovery, tokens
from kcm.helpers.serviceaccount.claims import (
    BoundClaims,
    BoundObjects,
    LegacyClaims,
    Reference,
    audiences_of,
    bound_claims,
    find_time_fault,
    legacy_claims,
)
from kcm.helpers.serviceaccount.tokens import InvalidToken, Verifier, read_unverified_issuer, sign


def pem_of(private: object) -> bytes:
    pem: bytes = private.private_bytes(  # type: ignore[attr-defined]
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return pem


def public_pem_of(private: object) -> bytes:
    pem: bytes = private.public_key().public_bytes(  # type: ignore[attr-defined]
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return pem


def test_a_new_key_file_is_for_its_owner_only_and_stays(tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "sa.key"
    tokens.ensure_key_file(file)
    first = file.read_bytes()
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert file.stat().st_mode & 0o777 == 0o600
    assert tokens.read_signing_key(file, "flag").verification.algorithm == "ES256"
    tokens.ensure_key_file(file)
    assert file.read_bytes() == first
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize(
    ("private", "algorithm"),
    [
        (rsa.generate_private_key(65537, 2048), "RS256"),
        (ec.generate_private_key(ec.SECP256R1()), "ES256"),
        (ec.generate_private_key(ec.SECP384R1()), "ES384"),
        (ec.generate_private_key(ec.SECP521R1()), "ES512"),
    ],
)
def test_the_kind_of_key_decides_the_algorithm(private: object, algorithm: str) -> None:
    key = tokens.parse_signing_key(pem_of(private))
    assert key.verification.algorithm == algorithm
    assert tokens.parse_verification_keys(public_pem_of(private))[0].id == key.verification.id


def test_a_file_of_several_keys_gives_all_of_them() -> None:
    one, two = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    found = tokens.parse_verification_keys(b"words\n" + public_pem_of(one) + pem_of(two))
    assert [key.id for key in found] == [
        tokens.parse_signing_key(pem_of(private)).verification.id for private in (one, two)
    ]


def test_a_private_key_is_in_no_repr() -> None:
    key = tokens.parse_signing_key(pem_of(ec.generate_private_key(ec.SECP256R1())))
    assert "private" not in repr(key)


def damaged_pem() -> bytes:
    """Returns an RSA key that signs what its public part does not verify."""
    numbers = rsa.generate_private_key(65537, 2048).private_numbers()
    damaged = rsa.RSAPrivateNumbers(
        p=numbers.p,
        q=numbers.q,
        d=numbers.d + 2,
        dmp1=numbers.dmp1 + 2,
        dmq1=numbers.dmq1 + 2,
        iqmp=numbers.iqmp,
        public_numbers=numbers.public_numbers,
    )
    return pem_of(damaged.private_key(unsafe_skip_rsa_key_validation=True))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it has no key in PEM format"),
        (pem_of(dsa.generate_private_key(1024)), "keys must be RSA of at least 2048 bits"),
        (pem_of(rsa.generate_private_key(65537, 1024)), "keys must be RSA of at least 2048 bits"),
        (public_pem_of(ec.generate_private_key(ec.SECP256R1())), "there is no private key"),
        (b"-----BEGIN PRIVATE KEY-----\nxxxx\n-----END PRIVATE KEY-----", "a key cannot be read"),
        (damaged_pem(), "a key cannot be read: its public part does not verify what it signs"),
    ],
)
def test_a_file_that_cannot_sign_is_refused_by_its_flag(
    content: bytes, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    with pytest.raises(errors.ConfigurationError) as caught:
        tokens.read_signing_key(file, "service-account-signing-key-file")
    assert caught.value.message.startswith(f"--service-account-signing-key-file {file}: {message}")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigurationError, match=r"--flag .*none: No such file"):
        tokens.read_verification_keys([tmp_path / "none"], "flag")


NOW = datetime(2026, 1, 1, tzinfo=UTC)
ISSUER = "https://issuer"
ACCOUNT = ServiceAccount(metadata=ObjectMeta(name="a", namespace="ns", uid="uid-a"))
RSA = tokens.parse_signing_key(pem_of(rsa.generate_private_key(65537, 2048)))
EC = tokens.parse_signing_key(pem_of(ec.generate_private_key(ec.SECP256R1())))
OTHER = tokens.parse_signing_key(pem_of(ec.generate_private_key(ec.SECP256R1())))


@pytest.mark.parametrize("key", [RSA, EC])
def test_what_was_signed_is_verified(key: tokens.SigningKey) -> None:
    claims = bound_claims(ACCOUNT, BoundObjects(), ["api"], NOW, seconds=600)
    token = sign(key, ISSUER, claims)
    verifier = Verifier([OTHER.verification, key.verification])
    for _ in range(2):  # the second time from memory
        assert verifier.verify(token, {ISSUER}) == {**claims, "iss": ISSUER}
    assert jwt.get_unverified_header(token) == {
        "alg": key.verification.algorithm,
        "kid": key.verification.id,
    }


def test_a_token_of_another_issuer_is_somebody_elses() -> None:
    assert Verifier([EC.verification]).verify(sign(EC, "other", {}), {ISSUER}) is None
    for text in ("", "a.b.c", "x", "a.e30.c", "." * 99_999):
        assert Verifier([EC.verification]).verify(text, {ISSUER}) is None


def test_a_token_of_another_key_is_invalid() -> None:
    verifier = Verifier([EC.verification])
    with pytest.raises(InvalidToken, match="invalid signature, no keys found"):
        verifier.verify(sign(OTHER, ISSUER, {}), {ISSUER})
    forged = jwt.encode({"iss": ISSUER}, OTHER.private, "ES256")
    with pytest.raises(InvalidToken, match="cannot be verified"):
        verifier.verify(forged, {ISSUER})


def test_neither_an_unsigned_token_nor_another_algorithm_is_accepted() -> None:
    def encode(part: dict[str, str]) -> str:
        return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()

    unsigned = f"{encode({'alg': 'none'})}.{encode({'iss': ISSUER})}."
    with pytest.raises(InvalidToken):
        Verifier([EC.verification]).verify(unsigned, {ISSUER})
    secret = jwt.encode({"iss": ISSUER}, "x" * 64, "HS256")
    with pytest.raises(InvalidToken):
        Verifier([EC.verification]).verify(secret, {ISSUER})


def test_a_changed_token_is_invalid() -> None:
    head, _, signature = sign(EC, ISSUER, {"sub": "a"}).split(".")
    other = sign(EC, ISSUER, {"sub": "b"}).split(".")[1]
    with pytest.raises(InvalidToken):
        Verifier([EC.verification]).verify(f"{head}.{other}.{signature}", {ISSUER})


def test_an_issuer_is_read_without_trust() -> None:
    assert read_unverified_issuer(sign(EC, ISSUER, {})) == ISSUER


# After TestClaims of pkg/serviceaccount/claims_test.go.
@pytest.mark.parametrize(
    ("bound", "private"),
    [
        (BoundObjects(), {}),
        (
            BoundObjects(pod=Pod(metadata=ObjectMeta(name="p", namespace="ns", uid="uid-p"))),
            {"pod": {"name": "p", "uid": "uid-p"}},
        ),
        (
            BoundObjects(secret=Secret(metadata=ObjectMeta(name="s", namespace="ns", uid="uid-s"))),
            {"secret": {"name": "s", "uid": "uid-s"}},
        ),
        (
            BoundObjects(node=Node(metadata=ObjectMeta(name="n", uid="uid-n"))),
            {"node": {"name": "n", "uid": "uid-n"}},
        ),
        (
            BoundObjects(
                pod=Pod(metadata=ObjectMeta(name="p", namespace="ns", uid="uid-p")),
                node=Node(metadata=ObjectMeta(name="gone")),
            ),
            {"pod": {"name": "p", "uid": "uid-p"}, "node": {"name": "gone"}},
        ),
    ],
)
def test_the_claims_name_what_a_token_is_bound_to(
    bound: BoundObjects, private: dict[str, object]
) -> None:
    claims = bound_claims(ACCOUNT, bound, ["api"], NOW, seconds=600, warn_after=60)
    begin = int(NOW.timestamp())
    account = {"name": "a", "uid": "uid-a"}
    assert claims.pop("jti")
    assert claims == {
        "aud": ["api"],
        "exp": begin + 600,
        "iat": begin,
        "nbf": begin,
        "sub": "system:serviceaccount:ns:a",
        "kubernetes.io": {
            "namespace": "ns",
            "serviceaccount": account,
            "warnafter": begin + 60,
            **private,
        },
    }


def test_claims_are_read_back_and_nonsense_is_empty() -> None:
    legacy = legacy_claims(ACCOUNT, Secret(metadata=ObjectMeta(name="s", namespace="ns")))
    assert LegacyClaims.read(legacy) == LegacyClaims(
        "system:serviceaccount:ns:a", "ns", Reference("a", "uid-a"), "s"
    )
    strange = {"kubernetes.io": 7, "jti": [], "aud": {"a": 1}, "exp": "soon"}
    assert BoundClaims.read(strange) == BoundClaims("", Reference("", ""), None, None, None, "")
    assert audiences_of(strange) == []
    assert audiences_of({"aud": "one"}) == ["one"]


# After TestValidatePrivateClaims of pkg/serviceaccount/claims_test.go.
@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("exp", -61, "service account token has expired"),
        ("exp", -59, ""),
        ("nbf", 61, "service account token is not valid yet"),
        ("nbf", 59, ""),
        ("iat", 61, "service account token is issued in the future"),
    ],
)
def test_times_count_with_a_minute_for_clocks_that_differ(
    name: str, value: int, fault: str
) -> None:
    assert find_time_fault({name: NOW.timestamp() + value}, NOW) == fault


def test_the_key_set_verifies_tokens() -> None:
    for key in (RSA, EC):
        document = discovery.key_set([key.verification])
        public = jwt.PyJWKSet.from_dict(document)[key.verification.id]
        token = sign(key, ISSUER, {"sub": "a"})
        assert jwt.decode(token, public, [key.verification.algorithm])["sub"] == "a"


def test_the_configuration_names_the_algorithms() -> None:
    found = discovery.configuration(ISSUER, "https://s/jwks", [RSA.verification, EC.verification])
    assert found == {
        "issuer": ISSUER,
        "jwks_uri": "https://s/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256", "RS256"],
    }
